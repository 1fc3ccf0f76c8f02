// NCCL's types of elements and its reductions, on the host.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace hv::fake {

constexpr int kPremultipliedSum = 5;  // beside NCCL's own numbers, which end before it

struct Reduction {
  int kind = 0;                          // of nccl_abi.h, or kPremultipliedSum
  std::array<std::byte, 8> scalar = {};  // of kPremultipliedSum, of the tensor's type
};

std::size_t element_bytes(int type);  // 0: no such type
bool can_reduce(int type);

// Element by element, in the order of the parts; `to` may be one of them. 16-bit and 8-bit
// floats are added up in float32 and rounded once; NCCL itself rounds them more often, and makes
// the greatest number of what is too large for 8 bits.
void reduce(const std::vector<const std::byte*>& parts, std::byte* to, std::size_t count, int type,
            const Reduction& reduction);

}  // namespace hv::fake
