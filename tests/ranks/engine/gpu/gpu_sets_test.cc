// Process sets that share GPUs: each rank enqueues for them in an order of its own, and all of it
// ends, though a GPU of the stand-in's carries out one collective at a time, as it was given them.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/ranks/engine/job.h"

using namespace hv;
using namespace hv::runtime;

namespace {

const std::vector<std::vector<std::int32_t>> kSets{{0, 1}, {1, 2}, {0, 2}};
constexpr std::int64_t kSetCount = 500;

struct Share {
  std::uint32_t set = 0;
  float sum = 0;  // of what its members have
  std::string name;
  std::vector<float> values;
  std::uint64_t handle = 0;
};

// Those of all sets that the rank is in, twice, and of all ranks.
std::vector<Share> shares_of(const Rank& rank, const std::vector<std::uint32_t>& numbers) {
  std::vector<Share> shares;
  const auto add = [&](std::uint32_t set, const std::vector<std::int32_t>& members) {
    for (const char* name : {"a", "b"}) {
      Share share{set, 0, name, std::vector<float>(kSetCount, static_cast<float>(rank.rank + 1))};
      for (const std::int32_t member : members) share.sum += static_cast<float>(member + 1);
      shares.push_back(share);
    }
  };
  add(0, {0, 1, 2});
  for (std::size_t i = 0; i < kSets.size(); ++i)
    if (std::count(kSets[i].begin(), kSets[i].end(), rank.rank) > 0) add(numbers[i], kSets[i]);
  return shares;
}

}  // namespace

TEST_CASE("sets that share ranks are served in one order, whatever the order of their callers") {
  for (const JobShape& shape : {JobShape{3}, JobShape{1, 2}}) {
    CAPTURE(name_of(shape));
    run_job(in_shape(shape), [](Rank& rank) {
      std::vector<std::uint32_t> numbers(kSets.size());
      for (std::size_t i = 0; i < kSets.size(); ++i) {
        const Status added = rank.context.add_process_set(kSets[i], &numbers[i]);
        expect(added.ok(), added.message);
      }
      std::mt19937_64 random(static_cast<std::uint64_t>(rank.rank));
      for (int round = 0; round < 30; ++round) {
        rank.at("round " + std::to_string(round));
        std::vector<Share> shares = shares_of(rank, numbers);
        std::shuffle(shares.begin(), shares.end(), random);
        for (Share& share : shares) {
          hvrun_request request = allreduce_request(share.name.c_str(), &kSetCount,
                                                    share.values.data(), share.values.data());
          request.process_set = share.set;
          const Status status = rank.enqueue(request, &share.handle);
          expect(status.ok(), status.message);
        }
        for (Share& share : shares) {
          const Status status = rank.wait(share.handle);
          expect(status.ok(), status.message);
          rank.context.release(share.handle);
          expect(share.values == std::vector<float>(kSetCount, share.sum),
                 "set " + std::to_string(share.set) + ": a wrong sum");
        }
      }
    });
  }
}

// Only the stand-in counts.
TEST_CASE("sets that have gone leave no streams on their GPUs" * doctest::test_suite("stand-in")) {
  const auto use_sets = [](int count) {
    run_job(in_shape({3}), [count](Rank& rank) {
      for (int i = 0; i < count; ++i) {
        std::uint32_t set = 0;
        Status status = rank.context.add_process_set({0, 1}, &set);
        expect(status.ok(), status.message);
        float value = 1;
        const std::int64_t shape = 1;
        hvrun_request request = allreduce_request("a", &shape, &value, &value);
        request.process_set = set;
        std::uint64_t handle = 0;
        if (rank.rank < 2) {
          status = rank.enqueue(request, &handle);
          if (status.ok()) status = rank.wait(handle);
          expect(status.ok(), status.message);
          rank.context.release(handle);
        }
        status = rank.context.remove_process_set(set);
        expect(status.ok(), status.message);
      }
    });
  };
  use_sets(1);
  const int before = Gpu::left();
  use_sets(20);
  const int after = Gpu::left();
  CHECK(after < before + 20);  // a set has three
}
