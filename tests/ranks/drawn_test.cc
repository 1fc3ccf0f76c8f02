// SPDX-License-Identifier: Apache-2.0
#include "tests/ranks/drawn.h"

#include <doctest/doctest.h>

#include <algorithm>

#include <set>

namespace hv {
namespace {

const std::vector<std::size_t> kSizes = {12, 12, 4, 6};

std::set<std::vector<std::size_t>> pairs_in(const std::vector<std::vector<std::size_t>>& rows) {
  std::set<std::vector<std::size_t>> pairs;
  for (const auto& row : rows)
    for (std::size_t a = 0; a < row.size(); ++a)
      for (std::size_t b = a + 1; b < row.size(); ++b) pairs.insert({a, row[a], b, row[b]});
  return pairs;
}

TEST_CASE("a scale below the usual one keeps a part of the rows, the same for a seed") {
  const auto rows = covering_rows(kSizes, 7);
  CHECK(scaled_rows(rows, 0.1, 7) == rows);
  const auto half = scaled_rows(rows, 0.05, 7);
  CHECK(half.size() == rows.size() / 2);
  CHECK(std::includes(rows.begin(), rows.end(), half.begin(), half.end()));
  CHECK(scaled_rows(rows, 0.05, 7) == half);
  CHECK(scaled_rows(rows, 0.05, 8) != half);
  CHECK(scaled_rows(rows, 0.0001, 7).size() == 1);
}

}  // namespace

TEST_CASE("covering rows have each pair that the whole product has, and are few") {
  const auto whole = all_rows(kSizes);
  REQUIRE(whole.size() == 12 * 12 * 4 * 6);
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto rows = covering_rows(kSizes, seed);
    CHECK(pairs_in(rows) == pairs_in(whole));
    CHECK(rows.size() < whole.size() / 15);
  }
}

TEST_CASE("covering rows repeat with their seed, and differ with another") {
  CHECK(covering_rows(kSizes, 7) == covering_rows(kSizes, 7));
  CHECK(covering_rows(kSizes, 7) != covering_rows(kSizes, 8));
}

TEST_CASE("covering rows of two axes are the whole, and of an axis without values there are none") {
  CHECK(covering_rows({3, 4}, 1) == all_rows({3, 4}));
  CHECK(covering_rows({3, 0}, 1).empty());
}

}  // namespace hv
