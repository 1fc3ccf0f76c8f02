// The store of ranks that are threads of one process (tests). One hub per job, one store per rank.
// SPDX-License-Identifier: Apache-2.0
//
// The hub must outlive its stores. Different ranks' stores may be used by different threads at
// once.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "src/base/unique_fd.h"
#include "src/rendezvous/store.h"

namespace hv {

class InprocStoreHub {
 public:
  explicit InprocStoreHub(int size, const JobKey& key = random_key());
  std::unique_ptr<Store> store(int rank);

  // Plays the agent: tells every other rank that this one has ended, and ends fences that wait for
  // it.
  void announce_loss(int rank, const std::string& reason);
  // What ranks reported: (lost rank, reason).
  std::vector<std::pair<int, std::string>> reported_losses();
  std::vector<std::pair<int, wire::StepTimes>> reported_step_times();  // by whom
  std::vector<std::pair<int, wire::TensorStall>> reported_stalls();
  int goodbyes();

 private:
  friend class InprocStore;
  struct Mailbox {
    std::deque<PeerEvent> events;
    UniqueFd fd;
  };

  const int size_;
  const JobKey key_;
  std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::map<std::pair<int, std::string>, std::string> published_;
  std::map<std::pair<int, std::string>, std::string> unfenced_;
  int arrived_ = 0;
  std::uint64_t fences_ = 0;
  std::string lost_;  // words of the first loss
  std::vector<Mailbox> mailboxes_;
  std::vector<std::pair<int, std::string>> reports_;
  std::vector<std::pair<int, wire::StepTimes>> step_times_;
  std::vector<std::pair<int, wire::TensorStall>> stalls_;
  int goodbyes_ = 0;
};

}  // namespace hv
