// The mutations: bits, bytes, numbers at their limits, insertions, deletions, repetitions, splices.
// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/mutator.h"

#include <algorithm>
#include <cstring>

namespace hv::fuzz {

Mutator::Mutator(std::vector<std::string> pool, std::uint64_t seed)
    : pool_(std::move(pool)), random_(seed) {
  pool_.emplace_back();  // from nothing, too
}

std::string Mutator::piece_of_any() {
  const std::string& from = any();
  const std::size_t at = below(from.size());
  return from.substr(at, 1 + below(from.size() - at));
}

// Lengths and counts go wrong at their limits, in any width.
void Mutator::overwrite_number(std::string* bytes, std::size_t at) {
  static constexpr std::int64_t kNumbers[] = {
      0,     1,     2,         -1,         127,       128,       255,      256,
      32767, 65535, INT32_MAX, UINT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
  const std::int64_t number = kNumbers[below(std::size(kNumbers))];
  const std::size_t width = std::min(std::size_t{1} << below(4), bytes->size() - at);
  std::memcpy(bytes->data() + at, &number, width);
}

void Mutator::mutate(std::string* bytes) {
  const std::size_t at = below(bytes->size() + 1);
  const std::size_t inside = below(bytes->size());
  const std::size_t size = 1 + below(std::min<std::size_t>(bytes->size() - at + 1, 16));
  switch (below(9)) {
    case 0:
      if (!bytes->empty()) (*bytes)[inside] ^= static_cast<char>(1 << below(8));
      break;
    case 1:
      if (!bytes->empty()) (*bytes)[inside] = static_cast<char>(random_());
      break;
    case 2:
      overwrite_number(bytes, at);
      break;
    case 3:
      bytes->erase(at, size);
      break;
    case 4:
      for (std::size_t i = 0; i < size; ++i) bytes->insert(at, 1, static_cast<char>(random_()));
      break;
    case 5:
      bytes->insert(at, piece_of_any());
      break;
    case 6: {
      const std::string piece = bytes->substr(at, size);
      for (std::size_t i = below(below(8) == 0 ? 300 : 4); i > 0; --i) bytes->insert(at, piece);
      break;
    }
    case 7:
      bytes->resize(at);
      *bytes += piece_of_any();
      break;
    default:
      // Swapped neighbours.
      if (at + size < bytes->size())
        std::rotate(bytes->begin() + static_cast<std::ptrdiff_t>(at),
                    bytes->begin() + static_cast<std::ptrdiff_t>(at + size / 2),
                    bytes->begin() + static_cast<std::ptrdiff_t>(at + size));
      break;
  }
}

std::string Mutator::next() {
  std::string bytes = any();
  // Few changes as a rule: what is nearly right gets farthest into a parser.
  const std::size_t changes = 1 + below(1 + below(8));
  for (std::size_t i = 0; i < changes; ++i) mutate(&bytes);
  if (bytes.size() > kLongest) bytes.resize(kLongest);
  return bytes;
}

}  // namespace hv::fuzz
