// Numbers of the response cache on the wire: those of one step are neighbours, so a bit is enough.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hv::runtime {

// first, and first + 1 + i for every bit i that is set (of byte i / 8 the bit i % 8).
struct NumberBits {
  std::uint64_t first = 0;
  std::string bits;
  bool operator==(const NumberBits&) const = default;
  void fields(auto& a) { a(first, bits); }
};

// Different numbers, in any order; a gap that a further window would fill with fewer bytes ends
// one.
std::vector<NumberBits> pack_numbers(std::vector<std::uint64_t> numbers);
// Ascending within each window. False, and some of them, when there are more than `most`: a few
// bytes stand for many numbers.
bool unpack_numbers(const std::vector<NumberBits>& windows, std::size_t most,
                    std::vector<std::uint64_t>* numbers);

}  // namespace hv::runtime
