// What a quick run does of the much that --full does: HVRUN_TEST_SCALE of a count, and of a product
// of several axes a set in which each pair of values of two axes occurs, drawn by HVRUN_TEST_SEED.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

namespace hv {

// HVRUN_TEST_SCALE of a count, at least one.
int scaled(int count);

// Whether all of a product is wanted: HVRUN_TEST_SCALE is 1 or not set.
bool is_whole_product();

// Indices into axes of these sizes: for each pair of values of two axes a row that has both.
std::vector<std::vector<std::size_t>> covering_rows(const std::vector<std::size_t>& sizes,
                                                    std::uint64_t seed);

// All indices into axes of these sizes.
std::vector<std::vector<std::size_t>> all_rows(const std::vector<std::size_t>& sizes);

// HVRUN_TEST_SEED, 0 where it is not set.
std::uint64_t test_seed();

// The part of these rows that a scale below that of a usual run, 0.1, keeps; at least one.
std::vector<std::vector<std::size_t>> scaled_rows(std::vector<std::vector<std::size_t>> rows,
                                                  double scale, std::uint64_t seed);

// HVRUN_TEST_SCALE.
double test_scale();

// The combinations that a test runs, in the axes' order. Ranks of one job get the same ones.
template <class... Values>
std::vector<std::tuple<Values...>> drawn_product(const std::vector<Values>&... axes) {
  const std::vector<std::size_t> sizes = {axes.size()...};
  const auto rows = is_whole_product()
                        ? all_rows(sizes)
                        : scaled_rows(covering_rows(sizes, test_seed()), test_scale(), test_seed());
  const auto combination = [&]<std::size_t... kAxis>(const std::vector<std::size_t>& row,
                                                     std::index_sequence<kAxis...>) {
    return std::tuple<Values...>(axes[row[kAxis]]...);
  };
  std::vector<std::tuple<Values...>> product;
  for (const auto& row : rows)
    product.push_back(combination(row, std::index_sequence_for<Values...>()));
  return product;
}

}  // namespace hv
