// MovedBytes: how many bytes of operations one rank has moved, by the way they went.
// SPDX-License-Identifier: Apache-2.0
//
// Written by whoever drives; read by any thread at any time, each number by itself.
#pragma once

#include <atomic>
#include <cstdint>

namespace hv::runtime {

struct MovedBytes {
  // Put into memory that this rank shares with others of its host, for them to read: of its own
  // tensors, and of what it has received for them.
  std::atomic<std::uint64_t> shared_memory{0};
  // Sent to ranks of other hosts, without headers of the connection.
  std::atomic<std::uint64_t> tcp{0};
};

}  // namespace hv::runtime
