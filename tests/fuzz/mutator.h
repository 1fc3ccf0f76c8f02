// Seeded random mutations of a pool of inputs, for fuzzing without a compiler that guides it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace hv::fuzz {

class Mutator {
 public:
  static constexpr std::size_t kLongest = 64 << 10;

  // pool: what mutations start from and take pieces of; may be empty.
  Mutator(std::vector<std::string> pool, std::uint64_t seed);
  std::string next();

 private:
  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }
  const std::string& any() { return pool_[below(pool_.size())]; }
  std::string piece_of_any();
  void mutate(std::string* bytes);
  void overwrite_number(std::string* bytes, std::size_t at);

  std::vector<std::string> pool_;
  std::mt19937_64 random_;
};

}  // namespace hv::fuzz
