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
// are exact in every type (integers may wrap all the same: products do).
Bytes random_elements(ElementType type, std::size_t count, std::uint64_t seed);

// The result that every rank must have, folded in rank order. finish as the request says.
Bytes reference_allreduce(const CollectiveRequest& request, const std::vector<Bytes>& inputs);

// How far results may be from the reference, in units of the type's last place; 0: must be equal.
// Empty when they agree, else where and how they differ.
std::string first_difference(ElementType type, const Bytes& expected, const Bytes& actual,
                             int ulps);

const std::vector<ElementType>& all_types();
const std::vector<Reduction>& all_reductions();

}  // namespace hv::runtime
