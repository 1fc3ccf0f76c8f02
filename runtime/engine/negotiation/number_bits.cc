// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/number_bits.h"

#include <algorithm>
#include <cstddef>

namespace hv::runtime {
namespace {

// A window costs a number and a length.
constexpr std::size_t kWindowBytes = sizeof(std::uint64_t) + sizeof(std::uint32_t);

}  // namespace

std::vector<NumberBits> pack_numbers(std::vector<std::uint64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  std::vector<NumberBits> windows;
  for (const std::uint64_t number : numbers) {
    if (!windows.empty()) {
      NumberBits& window = windows.back();
      const std::uint64_t bit = number - window.first - 1;
      const std::uint64_t byte = bit / 8;
      if (byte < window.bits.size() + kWindowBytes) {
        if (byte >= window.bits.size()) window.bits.resize(byte + 1, '\0');
        window.bits[byte] = static_cast<char>(window.bits[byte] | (1 << (bit % 8)));
        continue;
      }
    }
    windows.push_back({number, {}});
  }
  return windows;
}

bool unpack_numbers(const std::vector<NumberBits>& windows, std::size_t most,
                    std::vector<std::uint64_t>* numbers) {
  for (const NumberBits& window : windows) {
    numbers->push_back(window.first);
    for (std::size_t bit = 0; bit < 8 * window.bits.size() && numbers->size() <= most; ++bit)
      if (window.bits[bit / 8] & (1 << (bit % 8))) numbers->push_back(window.first + 1 + bit);
    if (numbers->size() > most) return false;
  }
  return true;
}

}  // namespace hv::runtime
