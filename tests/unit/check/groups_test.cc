// SPDX-License-Identifier: Apache-2.0
#include "launcher/check/groups.h"

#include <doctest/doctest.h>

namespace hv::launcher {
namespace {

TEST_CASE("groups have hosts of the same fact together, the largest first") {
  const auto groups =
      group_facts({{"n1", "a"}, {"n2", "b"}, {"n3", "b"}, {"n4", "c"}, {"n5", "b"}, {"n6", "a"}});
  CHECK(groups_as_text(groups) == "n[2-3,5]: b, n[1,6]: a, n4: c");
  CHECK(odd_hosts(groups) == std::vector<std::string>{"n1", "n6", "n4"});
  CHECK(odd_hosts(group_facts({})).empty());
}

}  // namespace
}  // namespace hv::launcher
