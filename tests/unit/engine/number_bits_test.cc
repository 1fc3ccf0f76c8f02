// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/number_bits.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "src/wire/codec.h"

using namespace hv::runtime;

namespace {

std::size_t bytes_of(const std::vector<NumberBits>& windows) {
  return hv::encode(windows[0]).size();
}

}  // namespace

TEST_CASE("numbers come out as they went in, whatever their distances") {
  std::mt19937_64 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::uint64_t> numbers;
    std::uint64_t next = random() % 3 ? random() % 1000 : UINT64_MAX - 5000;
    const std::uint64_t most = std::uint64_t{1} << (random() % 9);
    for (std::size_t i = random() % 40; i > 0; --i) numbers.push_back(next += 1 + random() % most);
    std::vector<std::uint64_t> shuffled = numbers;
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    std::vector<std::uint64_t> unpacked;
    CHECK(unpack_numbers(pack_numbers(shuffled), numbers.size(), &unpacked));
    CHECK(unpacked == numbers);
  }
}

TEST_CASE("neighbours cost a bit each, and what is far apart does not cost the distance") {
  std::vector<std::uint64_t> step(161);
  for (std::size_t i = 0; i < step.size(); ++i) step[i] = 1000 + i;
  const auto near = pack_numbers(step);
  REQUIRE(near.size() == 1);
  CHECK(bytes_of(near) == 8 + 4 + 20);
  CHECK(pack_numbers({7, 1'000'000'000'000}).size() == 2);
}

TEST_CASE("few bytes that stand for many numbers are refused before they are many") {
  std::vector<std::uint64_t> numbers;
  CHECK_FALSE(unpack_numbers({{1, std::string(1 << 20, '\xff')}}, 100, &numbers));
  CHECK(numbers.size() == 101);
  numbers.clear();
  CHECK_FALSE(unpack_numbers(std::vector<NumberBits>(1000), 100, &numbers));
  CHECK(numbers.size() == 101);
}
