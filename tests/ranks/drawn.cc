// SPDX-License-Identifier: Apache-2.0
#include "tests/ranks/drawn.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <random>
#include <set>
#include <string>

namespace hv {
namespace {

using Value = std::pair<std::size_t, std::size_t>;  // an axis and an index into it
using ValuePair = std::pair<Value, Value>;          // the lower axis first

ValuePair pair_of(const Value& a, const Value& b) { return {std::min(a, b), std::max(a, b)}; }

std::set<ValuePair> all_pairs(const std::vector<std::size_t>& sizes) {
  std::set<ValuePair> pairs;
  for (std::size_t a = 0; a < sizes.size(); ++a)
    for (std::size_t b = a + 1; b < sizes.size(); ++b)
      for (std::size_t i = 0; i < sizes[a]; ++i)
        for (std::size_t j = 0; j < sizes[b]; ++j) pairs.insert({{a, i}, {b, j}});
  return pairs;
}

// The value of an axis that makes the most missing pairs with those that are chosen; of several the
// first from a random place on.
std::size_t best_value(std::size_t axis, std::size_t size, const std::vector<Value>& chosen,
                       const std::set<ValuePair>& missing, std::mt19937_64& random) {
  const std::size_t first = random() % size;
  std::size_t best = first;
  std::optional<std::size_t> most;
  for (std::size_t i = 0; i < size; ++i) {
    const Value value{axis, (first + i) % size};
    const auto made = static_cast<std::size_t>(
        std::count_if(chosen.begin(), chosen.end(),
                      [&](const Value& other) { return missing.count(pair_of(value, other)); }));
    if (most && made <= *most) continue;
    most = made;
    best = value.second;
  }
  return best;
}

}  // namespace

double test_scale() {
  const char* text = std::getenv("HVRUN_TEST_SCALE");
  const double scale = text != nullptr ? std::atof(text) : 1;
  return scale > 0 ? scale : 1;
}

int scaled(int count) { return std::max(1, static_cast<int>(count * test_scale())); }

bool is_whole_product() { return test_scale() >= 1; }

std::uint64_t test_seed() {
  const char* text = std::getenv("HVRUN_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 0;
}

std::vector<std::vector<std::size_t>> covering_rows(const std::vector<std::size_t>& sizes,
                                                    std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::set<ValuePair> missing = all_pairs(sizes);
  std::vector<std::vector<std::size_t>> rows;
  while (!missing.empty()) {
    // Each row has one missing pair at least, so this ends.
    const ValuePair first =
        *std::next(missing.begin(), static_cast<std::ptrdiff_t>(random() % missing.size()));
    std::vector<Value> chosen = {first.first, first.second};
    std::vector<std::size_t> others;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis)
      if (axis != first.first.first && axis != first.second.first) others.push_back(axis);
    std::shuffle(others.begin(), others.end(), random);
    for (const std::size_t axis : others)
      chosen.push_back({axis, best_value(axis, sizes[axis], chosen, missing, random)});
    std::sort(chosen.begin(), chosen.end());
    std::vector<std::size_t> row;
    for (const auto& [axis, value] : chosen) row.push_back(value);
    for (const Value& a : chosen)
      for (const Value& b : chosen)
        if (a < b) missing.erase({a, b});
    rows.push_back(row);
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::vector<std::vector<std::size_t>> scaled_rows(std::vector<std::vector<std::size_t>> rows,
                                                  double scale, std::uint64_t seed) {
  constexpr double kUsualScale = 0.1;
  if (scale >= kUsualScale || rows.empty()) return rows;
  std::mt19937_64 random(seed);
  std::shuffle(rows.begin(), rows.end(), random);
  rows.resize(std::max<std::size_t>(
      1, static_cast<std::size_t>(static_cast<double>(rows.size()) * scale / kUsualScale)));
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::vector<std::vector<std::size_t>> all_rows(const std::vector<std::size_t>& sizes) {
  std::vector<std::vector<std::size_t>> rows = {{}};
  for (const std::size_t size : sizes) {
    std::vector<std::vector<std::size_t>> longer;
    for (const auto& row : rows)
      for (std::size_t i = 0; i < size; ++i) {
        longer.push_back(row);
        longer.back().push_back(i);
      }
    rows = std::move(longer);
  }
  return rows;
}

}  // namespace hv
