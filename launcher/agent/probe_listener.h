// ProbeListener: answers the other agents' reachability tests until the ranks are launched; proves
// over TCP that this is the expected host of the job.
// SPDX-License-Identifier: Apache-2.0
//
// An unauthenticated peer learns nothing: the listener takes 32 bytes, answers with a nonce and a
// proof that only a holder of the key can check, and takes the guest's proof. From an authenticated
// guest it receives the bytes of a path measurement (launcher/probes/pair_measure.h), and drops
// them. Connections are bounded in number and time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "launcher/agent/event_loop.h"
#include "src/base/clock.h"
#include "src/base/status.h"
#include "src/base/unique_fd.h"
#include "src/net/port_range.h"
#include "src/wire/authentication.h"

namespace hv::launcher {

// The purpose to which a probe's proofs are bound.
std::string probe_purpose(const std::string& job_id, std::uint32_t host_id);

class ProbeListener {
 public:
  ProbeListener(EventLoop& loop, const JobKey& key, std::string purpose)
      : loop_(loop), key_(key), purpose_(std::move(purpose)) {}
  ~ProbeListener();
  ProbeListener(const ProbeListener&) = delete;
  ProbeListener& operator=(const ProbeListener&) = delete;

  // On a port of that range, the last but one if it is free; the last is for MASTER_PORT.
  Status listen(const PortRange& range = {});
  std::uint16_t port() const { return port_; }
  // Guests that did, and that did not, prove that they hold the key.
  std::size_t proven() const { return proven_; }
  std::size_t refused() const { return refused_; }

 private:
  struct Guest {
    UniqueFd fd;
    std::string received;
    EventLoop::Timer deadline;
    TimePoint heard{};  // when the last bytes of the handshake came, or the connection
    bool is_answered = false;
    Proof expected{};  // once answered
    bool is_proven = false;
    std::uint64_t counted = 0;  // bytes received since then
  };
  void await_guests();
  void accept();
  std::optional<int> longest_silent() const;
  void receive(int fd);
  void answer(int fd, Guest& guest);
  void judge(int fd, Guest& guest);
  void serve(int fd, Guest& guest);
  void drop(int fd);

  EventLoop& loop_;
  JobKey key_;
  std::string purpose_;
  UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::size_t proven_ = 0;
  std::size_t refused_ = 0;
  std::map<int, Guest> guests_;
  bool is_accepting_ = false;
};

}  // namespace hv::launcher
