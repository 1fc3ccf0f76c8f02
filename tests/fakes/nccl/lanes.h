// The ways between one rank and its peers: a socket to each of them and one from each, and both
// ends of a transfer hold against each other what they think it is.
// SPDX-License-Identifier: Apache-2.0
//
// A transfer: each end writes its label, reads the other's, and then the bytes go. So none begins
// before both have come. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/unique_fd.h"
#include "tests/fakes/nccl/sockets.h"

namespace hv::fake {

enum class Call : int {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kSendReceive,
  kFinalize,
  kRegisterWindow,
  kShrink
};

// NCCL does not compare these; the stand-in refuses where they differ.
struct Label {
  Call call = Call::kAllReduce;
  int type = 0;
  int reduction = 0;
  int root = 0;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;  // of this transfer
  std::uint64_t place = 0;  // of a collective's buffers in windows: see window_place()

  std::string words() const;
};

struct Transfer {
  int peer = 0;
  bool is_sent = false;
  std::byte* at = nullptr;
  Label label;
};

class Lanes {
 public:
  Lanes() = default;
  // Each has a socket for every rank, the own one's empty.
  Lanes(int rank, std::vector<UniqueFd> to, std::vector<UniqueFd> from);

  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(to_.size()); }
  // All of them together, those of one peer and one direction in their order. A peer that is gone
  // is waited for. False: one of the signs was set.
  bool exchange(const std::vector<Transfer>& transfers, const StopSign& stop,
                const StopSign* other_stop = nullptr);

 private:
  int rank_ = 0;
  std::vector<UniqueFd> to_;
  std::vector<UniqueFd> from_;
};

}  // namespace hv::fake
