// The list of algorithms: for each collective the first that fits is taken.
// SPDX-License-Identifier: Apache-2.0
//
// The choice depends only on what is equal on all ranks: request, topology. Every algorithm here
// folds in the same order at every element (see allreduce_shares.cc), so `deterministic` needs no
// other choice; one that does not, a ring say, must refuse deterministic requests.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/collective/collective.h"
#include "runtime/collective/ring_collective.h"

namespace hv::runtime {

struct Algorithm {
  const char* name;
  CollectiveKind kind;
  const char* restrictions;  // in words, for docs/algorithms.md
  bool (*fits)(const CollectiveRequest& request, const Topology& topology);
  std::unique_ptr<Collective> (*make)(CollectiveSetup setup);
  // Taken up to this many bytes; beyond them a later one in the list is.
  std::size_t up_to_bytes;
};

const std::vector<Algorithm>& algorithms();
// nullptr: none of that name, or it does not fit.
const Algorithm* find_algorithm(const char* name);
const Algorithm& choose_algorithm(const CollectiveRequest& request, const Topology& topology);
std::unique_ptr<Collective> start_collective(CollectiveSetup setup);

}  // namespace hv::runtime
