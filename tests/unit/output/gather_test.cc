// Tests of launcher/output/gather.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/gather.h"
#include "src/base/text.h"

#include <doctest/doctest.h>

using hv::ranges_of;
using hv::launcher::gather;

TEST_CASE("gather makes one group of ranks with equal lines, in the order of first ranks") {
  const auto groups = gather({{3, {"a"}}, {1, {"b", "c"}}, {0, {"a"}}, {2, {"b", "c"}}});
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].ranks == std::vector<int>{0, 3});
  CHECK(groups[0].lines == std::vector<std::string>{"a"});
  CHECK(groups[1].ranks == std::vector<int>{1, 2});
  CHECK(groups[1].lines == std::vector<std::string>{"b", "c"});
}

TEST_CASE("gather leaves out ranks that said nothing and tells an empty line from none") {
  const auto groups = gather({{0, {}}, {1, {""}}, {2, {}}});
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].ranks == std::vector<int>{1});
  CHECK(gather({}).empty());
}

TEST_CASE("gather keeps apart what differs only in where lines end") {
  CHECK(gather({{0, {"ab"}}, {1, {"a", "b"}}}).size() == 2);
}

TEST_CASE("ranks are named singly or as ranges") {
  CHECK(ranges_of("rank", {3}) == "rank 3");
  CHECK(ranges_of("rank", {0, 1, 2, 5}) == "ranks 0-2,5");
}
