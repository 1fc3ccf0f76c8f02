// A plain reference for allreduce and friends: values as doubles and integers, one element at a
// time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/backend/backend.h"

namespace hv::runtime {

using Bytes = std::vector<std::byte>;

// `count` elements that a rank contributes, from a seed: small numbers, so that sums of any order
// are exact in every type, of 8-bit floats those of 8 ranks (integers may wrap all the same:
// products do).
Bytes random_elements(ElementType type, std::size_t count, std::uint64_t seed);

// Elements as numbers, and back: rounded to the type.
std::vector<double> numbers_of(ElementType type, const Bytes& bytes);
Bytes bytes_of(ElementType type, const std::vector<double>& numbers);
std::vector<double> rounded(ElementType type, const std::vector<double>& numbers);

// The result that every rank must have, folded in rank order. finish as the request says.
Bytes reference_allreduce(const CollectiveRequest& request, const std::vector<Bytes>& inputs);

// The same by Adasum: whole vectors pair by pair, rounded to the type after each pair.
Bytes reference_adasum(const CollectiveRequest& request, const std::vector<Bytes>& inputs);

// The first element that differs by more than `tolerance` times the largest expected one, or times
// `at_least` if that is more. Empty when none does, else where and how they differ.
std::string first_distance(ElementType type, const Bytes& expected, const Bytes& actual,
                           double tolerance, double at_least = 0);

// How far results may be from the reference, in units of the type's last place; 0: must be equal.
// Empty when they agree, else where and how they differ.
std::string first_difference(ElementType type, const Bytes& expected, const Bytes& actual,
                             int ulps);

const std::vector<ElementType>& all_types();
const std::vector<Reduction>& all_reductions();

}  // namespace hv::runtime
