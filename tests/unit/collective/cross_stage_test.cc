// Combining shares between hosts, over channels that dribble: any split of the bytes gives the same
// result.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/collective/cross/cross_stage.h"
#include "runtime/collective/registry.h"
#include "runtime/transport/placement.h"
#include "tests/fakes/flaky_transport.h"

namespace hv::runtime {
namespace {

// Every host's stage over one seeded net; hosts of one rank each.
template <typename Make>
std::vector<std::vector<float>> combine(int hosts, std::size_t shares, std::size_t count,
                                        std::uint64_t seed, Make&& make) {
  FlakyNet net(hosts, seed);
  std::vector<std::unique_ptr<FlakyPlane>> planes;
  std::vector<std::unique_ptr<CrossStage>> stages;
  std::vector<std::vector<float>> memory(static_cast<std::size_t>(hosts));
  // A share lies in a slot: bytes up to the next word after its end can be read.
  const std::size_t stride = (count + 3) / 2 * 2;
  for (int host = 0; host < hosts; ++host) {
    planes.push_back(std::make_unique<FlakyPlane>(net, host));
    stages.push_back(make(CrossTerms{
        *planes.back(), 0, 0, ElementType::kFloat32,
        best_kernels().reduce_for(ElementType::kFloat32, Reduction::kSum), Finish{1, 2}}));
    auto& mine = memory[static_cast<std::size_t>(host)];
    mine.resize(stride * shares);
    for (std::size_t i = 0; i < mine.size(); ++i)
      mine[i] = static_cast<float>(host * 100) + static_cast<float>(i % 91);
  }
  for (int host = 0; host < hosts; ++host)
    for (std::size_t share = 0; share < shares; ++share)
      stages[static_cast<std::size_t>(host)]->add(
          reinterpret_cast<std::byte*>(&memory[static_cast<std::size_t>(host)][share * stride]),
          count * sizeof(float));
  for (int turn = 0; turn < 1000000; ++turn) {
    bool all = true;
    for (auto& stage : stages) {
      stage->step();
      all = all && stage->completed() == shares;
    }
    if (all) return memory;
  }
  FAIL("the stages never completed");
  return memory;
}

float expected(int hosts, std::size_t i) {
  float sum = 0;
  for (int host = 0; host < hosts; ++host)
    sum += static_cast<float>(host * 100) + static_cast<float>(i % 91);
  return sum / 2;
}

}  // namespace

TEST_CASE("every way between hosts gives the sum on every host, whatever the channels do") {
  for (const CrossAlgorithm& way : cross_algorithms()) {
    CAPTURE(std::string(way.name));
    for (const int hosts : {2, 3, 5, 8}) {
      for (const std::size_t count : {1, 2, 17, 1000, 5001}) {
        for (std::uint64_t seed = 1; seed <= 3; ++seed) {
          const auto combined = combine(hosts, 3, count, seed, way.make);
          const std::size_t stride = (count + 3) / 2 * 2;
          for (int host = 0; host < hosts; ++host)
            for (std::size_t share = 0; share < 3; ++share)
              for (std::size_t i = share * stride; i < share * stride + count; ++i)
                REQUIRE(combined[static_cast<std::size_t>(host)][i] == expected(hosts, i));
        }
      }
    }
  }
}

TEST_CASE("an empty share completes in its turn") {
  for (const CrossAlgorithm& way : cross_algorithms())
    for (const auto& result : combine(3, 2, 0, 1, way.make)) CHECK(result.size() == 4);
}

}  // namespace hv::runtime
