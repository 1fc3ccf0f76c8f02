// RankRendezvous: what the ranks of this host have put, and which fence all of them have reached.
// Pure; rank_socket.h does the I/O.
// SPDX-License-Identifier: Apache-2.0
//
// A fence ends when every rank of the job has reached it: each agent reports its own ranks
// (FenceIn), hvrun answers with the puts of all ranks (FenceOut). A rank that has left is not
// waited for. A rank that ended without leaving never arrives: waiting ranks go on when its loss is
// reported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/wire/messages.h"

namespace hv::launcher {

class RankRendezvous {
 public:
  // Bytes that the ranks of a host may put between two fences: FenceIn must fit into a frame.
  static constexpr std::size_t kMostBytes = 32u << 20;

  explicit RankRendezvous(std::set<std::uint32_t> local_ranks) : local_(std::move(local_ranks)) {}

  bool is_local(std::uint32_t rank) const { return local_.count(rank) > 0; }
  void join(std::uint32_t rank, std::uint32_t epoch);
  void leave(std::uint32_t rank, std::uint32_t epoch);
  // The rank's process is gone.
  void note_end(std::uint32_t rank) { ended_.insert(rank); }
  // The rank has joined some epoch and not left it.
  bool is_joined(std::uint32_t rank) const;
  bool has_ever_joined(std::uint32_t rank) const;
  // The rank has ended, and had left every epoch that it had joined.
  bool has_ended_in_order(std::uint32_t rank) const;
  bool has_waiting_rank() const;
  bool is_waiting(std::uint32_t rank) const;
  // Local ranks that have not ended and wait at no fence.
  std::vector<std::uint32_t> absent() const;

  // False: more than a job may put.
  [[nodiscard]] bool put(std::uint32_t rank, std::uint32_t epoch, std::string key,
                         std::string value);
  void come_to_fence(std::uint32_t rank, std::uint32_t epoch, std::uint32_t number);
  // Fences that all local ranks have reached, each returned once; call after every change.
  std::vector<wire::FenceIn> complete();
  // Keeps the puts; returns the local ranks that may go on.
  std::vector<std::uint32_t> pass(const wire::FenceOut& out);
  const std::string* get(std::uint32_t epoch, std::uint32_t rank, const std::string& key) const;

 private:
  struct Epoch {
    // A rank may run one program after another, each of which joins: how often a rank has joined,
    // and which ranks are joined now.
    std::map<std::uint32_t, std::uint32_t> joins;
    std::set<std::uint32_t> joined;
    std::map<std::uint32_t, std::uint32_t> waiting;  // rank, the number of its fence
    std::optional<std::uint32_t>
        reported;  // fence that complete() has reported and pass() has not ended
    std::vector<wire::FencePut> puts;
    std::size_t put_bytes = 0;
    std::map<std::pair<std::uint32_t, std::string>, std::string> store;

    std::uint32_t joins_of(std::uint32_t rank) const {
      const auto found = joins.find(rank);
      return found == joins.end() ? 0 : found->second;
    }
  };
  bool is_awaited(const Epoch& epoch, std::uint32_t rank, std::uint32_t round,
                  std::uint32_t fence) const;
  std::optional<std::uint32_t> complete_fence(const Epoch& epoch) const;

  std::set<std::uint32_t> local_;
  std::set<std::uint32_t> ended_;
  std::map<std::uint32_t, Epoch> epochs_;
};

}  // namespace hv::launcher
