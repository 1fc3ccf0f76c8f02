// Tests of which cores ranks get, as tables of hosts.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/core_binding.h"

#include <doctest/doctest.h>

#include "src/base/error.h"
#include "src/base/text.h"

using namespace hv::launcher;

namespace {

// So many cores on each node; with two threads a core the second ones come after all first ones.
std::vector<CoreFacts> cores_of(const std::vector<int>& nodes, int threads = 1) {
  int all = 0;
  for (const int count : nodes) all += count;
  std::vector<CoreFacts> cores;
  for (std::size_t node = 0; node < nodes.size(); ++node)
    for (int i = 0; i < nodes[node]; ++i) {
      const int first = static_cast<int>(cores.size());
      cores.push_back({static_cast<int>(node), {first}});
      if (threads == 2) cores.back().threads.push_back(first + all);
    }
  return cores;
}

// "0-3*4 4-7*4": the threads of each rank, and its share.
std::string bound(BindTo bind_to, const std::vector<CoreFacts>& cores,
                  const std::vector<std::optional<int>>& gpu_nodes, bool in_turn = false,
                  int usable = 1000) {
  std::string text;
  for (const BoundRank& rank : bind_ranks(bind_to, in_turn, cores, usable, gpu_nodes, "a"))
    text += (text.empty() ? "" : " ") +
            (rank.threads.empty() ? "all" : hv::format_ranges(rank.threads)) + "*" +
            std::to_string(rank.own_cores);
  return text;
}

std::vector<std::optional<int>> ranks(std::size_t count) {
  return std::vector<std::optional<int>>(count);
}

}  // namespace

TEST_CASE("by itself a rank has an even share of a NUMA node, and never one core alone") {
  constexpr BindTo kDefault = BindTo::kAuto;
  CHECK(bound(kDefault, cores_of({8}), ranks(2)) == "0-3*4 4-7*4");
  CHECK(bound(kDefault, cores_of({8}), ranks(3)) == "0-1*2 2-4*2 5-7*2");
  CHECK(bound(kDefault, cores_of({8}), ranks(1)) == "0-7*8");
  CHECK(bound(kDefault, cores_of({8}), ranks(8)) ==
        "0-7*1 0-7*1 0-7*1 0-7*1 0-7*1 0-7*1 0-7*1 0-7*1");
  CHECK(bound(kDefault, cores_of({2}), ranks(2)) == "0-1*1 0-1*1");
  CHECK(bound(kDefault, cores_of({4, 4}), ranks(2)) == "0-3*4 4-7*4");
  CHECK(bound(kDefault, cores_of({4, 4}), ranks(1)) == "0-7*8");
  CHECK(bound(kDefault, cores_of({4, 4}), ranks(4)) == "0-1*2 2-3*2 4-5*2 6-7*2");
  CHECK(bound(kDefault, cores_of({2, 2, 2, 2}), ranks(2)) == "0-3*4 4-7*4");
  CHECK(bound(kDefault, cores_of({4}, 2), ranks(2)) == "0-1,4-5*2 2-3,6-7*2");
  CHECK(bound(kDefault, cores_of({1, 1}), ranks(2)) == "all*1 all*1");
  CHECK(bound(kDefault, cores_of({1}), ranks(1)) == "all*1");
  CHECK(bound(kDefault, cores_of({4, 1}), {1, 0}) == "all*1 0-3*2");
}

TEST_CASE("a rank with a GPU has the cores near it, all of them") {
  constexpr BindTo kDefault = BindTo::kAuto;
  CHECK(bound(kDefault, cores_of({4, 4}), {1, 1, 0, 0}) == "4-7*2 4-7*2 0-3*2 0-3*2");
  CHECK(bound(kDefault, cores_of({4, 4}), {0, 0, 0, 0}) == "0-3*1 0-3*1 0-3*1 0-3*1");
  CHECK(bound(kDefault, cores_of({4, 4}), {1, std::nullopt}) == "4-7*4 0-7*4");
  CHECK(bound(kDefault, cores_of({4, 4}), {7, 7}) == "0-3*4 4-7*4");  // a node without cores
}

TEST_CASE("what is asked for is done: none, one core, a NUMA node, the GPU's") {
  CHECK(bound(BindTo::kNone, cores_of({8}), ranks(2)) == "all*4 all*4");
  CHECK(bound(BindTo::kCore, cores_of({2, 2}, 2), ranks(4)) == "0,4*1 1,5*1 2,6*1 3,7*1");
  CHECK(bound(BindTo::kCore, cores_of({4, 4}), {1, 1}) == "4*1 5*1");
  CHECK(bound(BindTo::kCore, cores_of({4, 4}), {0, std::nullopt}) == "0*1 1*1");
  CHECK(bound(BindTo::kNuma, cores_of({4, 4}), ranks(1)) == "0-3*4");
  CHECK(bound(BindTo::kNuma, cores_of({4, 4}), ranks(4)) == "0-3*2 0-3*2 4-7*2 4-7*2");
  CHECK(bound(BindTo::kGpu, cores_of({4, 4}), {1, 0}) == "4-7*4 0-3*4");
  CHECK_THROWS_AS(bound(BindTo::kCore, cores_of({2}), ranks(3)), hv::Error);
  CHECK_THROWS_AS(bound(BindTo::kGpu, cores_of({4}), {0, std::nullopt}), hv::Error);
}

TEST_CASE("with --map-by numa ranks go round the nodes") {
  CHECK(bound(BindTo::kAuto, cores_of({4, 4}), ranks(4), true) == "0-1*2 4-5*2 2-3*2 6-7*2");
  CHECK(bound(BindTo::kAuto, cores_of({4, 4}), ranks(1), true) == "0-3*4");
}

TEST_CASE("a quota makes the share smaller, and a host that tells no cores binds nobody") {
  CHECK(bound(BindTo::kAuto, cores_of({8}), ranks(2), false, 4) == "0-3*2 4-7*2");
  CHECK(bound(BindTo::kAuto, {}, ranks(2), false, 4) == "all*2 all*2");
}

TEST_CASE("words of --bind-to") {
  CHECK(parse_bind_to("numa") == BindTo::kNuma);
  CHECK_FALSE(parse_bind_to("socket").has_value());
}
