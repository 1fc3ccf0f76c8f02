// One collective, run on every rank of a test job and compared with the plain reference.
// SPDX-License-Identifier: Apache-2.0
//
// Called by every rank with equal arguments. A difference or a failure throws, naming the
// operation.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "tests/ranks/reference.h"
#include "tests/ranks/run_ranks.h"

namespace hv::runtime {

void require(bool condition, const std::string& what);

CollectiveRequest allreduce_of(ElementType type, Reduction reduction);

// An operation under way, with the memory that it works on and what must come out.
struct CheckedOperation {
  std::string what;
  CollectiveRequest request;
  Bytes input, output, expected;
  bool is_in_place = false;
  int ulps = 0;

  const Bytes& result() const { return is_in_place ? input : output; }
  void verify(const Status& status) const;
};

// pieces: lengths of the segments, in elements; they need not be alike.
std::unique_ptr<CheckedOperation> make_allreduce(const RankContext& context,
                                                 CollectiveRequest request,
                                                 const std::vector<std::size_t>& pieces,
                                                 bool in_place, std::uint64_t seed);
std::unique_ptr<CheckedOperation> make_broadcast(const RankContext& context, ElementType type,
                                                 int root, const std::vector<std::size_t>& pieces,
                                                 std::uint64_t seed);
// counts: what each rank contributes.
std::unique_ptr<CheckedOperation> make_allgather(const RankContext& context, ElementType type,
                                                 const std::vector<std::int64_t>& counts,
                                                 std::uint64_t seed);
// Any of them, at random; all ranks with the same seed make the same.
std::unique_ptr<CheckedOperation> make_random(const RankContext& context, std::uint64_t seed);

void run_and_verify(RankContext& context, std::unique_ptr<CheckedOperation> operation);

// The shapes that every collective is tested on: 1, 2, 3, 5, 8 ranks; one host, two, three, uneven
// ones.
const std::vector<JobShape>& all_shapes();

}  // namespace hv::runtime
