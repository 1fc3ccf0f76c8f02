// Same bits: a reduction's result depends on nothing but its inputs and the job's shape.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstring>
#include <mutex>

#include "tests/ranks/collective_checks.h"

namespace hv::runtime {
namespace {

// Floats whose sum depends on the order of adding.
std::vector<float> delicate(std::size_t count, int rank) {
  std::mt19937 random(static_cast<unsigned>(rank) * 7919 + 13);
  std::vector<float> values(count);
  for (float& value : values)
    value = std::ldexp(static_cast<float>(static_cast<std::int32_t>(random())),
                       static_cast<int>(random() % 40) - 50);
  return values;
}

// The bytes of the sum over all ranks, reduced as one request per layout entry.
Bytes reduce_in_layout(RankContext& context, const std::vector<float>& input,
                       const std::vector<std::size_t>& pieces, bool fused) {
  std::vector<float> output(input.size());
  CollectiveRequest request = allreduce_of(ElementType::kFloat32, Reduction::kSum);
  request.deterministic = true;
  std::size_t at = 0;
  for (const std::size_t piece : pieces) {
    request.segments.push_back({reinterpret_cast<const std::byte*>(&input[at]),
                                reinterpret_cast<std::byte*>(&output[at]),
                                static_cast<std::int64_t>(piece)});
    at += piece;
    if (fused) continue;
    require(context.run(request).ok(), "allreduce");
    request.segments.clear();
  }
  if (fused) require(context.run(request).ok(), "fused allreduce");
  Bytes bytes(output.size() * sizeof(float));
  std::memcpy(bytes.data(), output.data(), bytes.size());
  return bytes;
}

}  // namespace

TEST_CASE("a reduction gives the same bits whatever the fusion, the slots, the order and the run") {
  constexpr std::size_t kCount = 30000;
  const std::vector<std::vector<std::size_t>> layouts = {
      {30000}, {1, 29999}, {10000, 10000, 10000}, {3, 5, 7, 11000, 18985}, {29000, 1000}};
  for (const JobShape& shape : {JobShape{2}, JobShape{3}, JobShape{5}, JobShape{8}, JobShape{3, 3},
                                JobShape{2, 2, 2}, JobShape{1, 1, 1}}) {
    CAPTURE(name_of(shape));
    std::mutex mutex;
    Bytes first;
    for (const std::size_t slot : {4096, 131072}) {
      RunOptions options;
      options.config.slot_bytes = slot;
      run_ranks(shape, options, [&](RankContext& context) {
        const std::vector<float> input = delicate(kCount, context.rank);
        for (const auto& layout : layouts) {
          for (const bool fused : {true, false}) {
            const Bytes result = reduce_in_layout(context, input, layout, fused);
            std::lock_guard lock(mutex);
            if (first.empty()) first = result;
            require(result == first, "the bits differ on rank " + std::to_string(context.rank));
          }
        }
      });
    }
  }
}

TEST_CASE("the delicate floats are delicate: another order of adding gives other bits") {
  const auto a = delicate(1000, 0), b = delicate(1000, 1), c = delicate(1000, 2);
  int differences = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    differences += (a[i] + b[i]) + c[i] != a[i] + (b[i] + c[i]);
  CHECK(differences > 100);
}

}  // namespace hv::runtime
