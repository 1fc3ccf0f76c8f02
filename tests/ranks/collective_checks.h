// One collective, run on every rank of a test job and compared with the plain reference.
// SPDX-License-Identifier: Apache-2.0
//
// Called by every rank with equal arguments. A difference or a failure throws, naming the
// operation.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/ranks/reference.h"
#include "tests/ranks/run_ranks.h"

namespace hv::runtime {

// What every rank got, so that each can compare with the others.
class SharedResults {
 public:
  explicit SharedResults(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}
  // Throws unless all ranks add the same bits under that name.
  void add(const std::string& what, const Bytes& result);

 private:
  const std::size_t ranks_;
  std::mutex mutex_;  // guards of_
  std::map<std::string, std::pair<Bytes, std::size_t>> of_;
};

void require(bool condition, const std::string& what);

CollectiveRequest allreduce_of(ElementType type, Reduction reduction);

// An operation under way, with the memory that it works on and what must come out.
struct CheckedOperation {
  std::string what;
  CollectiveRequest request;
  Bytes input, output, expected;
  bool is_in_place = false;
  int ulps = 0;
  std::function<void()> bring_back{};   // if set: puts the result where it is looked at
  Bytes moved_input{}, moved_output{};  // of misaligned()

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
// pieces: lengths of the segments, in rows of `row` elements each.
std::unique_ptr<CheckedOperation> make_reducescatter(const RankContext& context,
                                                     CollectiveRequest request,
                                                     const std::vector<std::size_t>& pieces,
                                                     std::size_t row, std::uint64_t seed);
// splits[from][to]: rows of `row` elements.
using Splits = std::vector<std::vector<std::int64_t>>;
std::unique_ptr<CheckedOperation> make_alltoall(const RankContext& context, ElementType type,
                                                const Splits& splits, std::size_t row,
                                                std::uint64_t seed);
// The same with tensors that begin `shift` bytes behind their buffers' starts.
std::unique_ptr<CheckedOperation> misaligned(std::unique_ptr<CheckedOperation> operation,
                                             std::size_t shift);
Splits random_splits(int size, std::int64_t most, std::uint64_t seed);
// Any of them, at random; all ranks with the same seed make the same.
std::unique_ptr<CheckedOperation> make_random(const RankContext& context, std::uint64_t seed);

void run_and_verify(RankContext& context, std::unique_ptr<CheckedOperation> operation);

// Starts all, then advances them in this rank's own order until all are done.
void run_together(RankContext& context, std::vector<std::unique_ptr<CheckedOperation>> operations,
                  std::uint64_t seed);

// The shapes that every collective is tested on: 1, 2, 3, 5, 8 ranks; one host, two, three, uneven
// ones.
const std::vector<JobShape>& all_shapes();

}  // namespace hv::runtime
