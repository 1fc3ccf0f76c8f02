// SPDX-License-Identifier: Apache-2.0
#include "launcher/check/groups.h"

#include <doctest/doctest.h>

namespace hv::launcher {
namespace {

TEST_CASE("groups name many hosts in few words") {
  using Names = std::vector<std::string>;
  CHECK(brief_names(Names{}) == "");
  CHECK(brief_names(Names{"n1"}) == "n1");
  CHECK(brief_names(Names{"n2", "n1", "n3", "n7"}) == "n[1-3,7]");
  CHECK(brief_names(Names{"gpu01", "gpu02", "gpu10", "login"}) == "gpu[01-02,10],login");
  CHECK(brief_names(Names{"n9", "n10"}) == "n9,n10");  // of other widths: each as it is written
  CHECK(brief_names(Names{"r1n1.site2", "r1n2.site2", "r2n1.site2"}) ==
        "r1n[1-2].site2,r2n1.site2");
  CHECK(brief_names(Names{"10.0.0.1", "10.0.0.2"}) == "10.0.0.1,10.0.0.2");
  CHECK(brief_names(Names{"fd00::1", "a"}) == "fd00::1,a");
  CHECK(brief_names(Names{"n1", "n1"}) == "n1");
  CHECK(brief_names(Names{"n12345678901"}) == "n12345678901");
}

TEST_CASE("groups have hosts of the same fact together, the largest first") {
  const auto groups =
      group_facts({{"n1", "a"}, {"n2", "b"}, {"n3", "b"}, {"n4", "c"}, {"n5", "b"}, {"n6", "a"}});
  CHECK(groups_as_text(groups) == "n[2-3,5]: b, n[1,6]: a, n4: c");
  CHECK(odd_hosts(groups) == std::vector<std::string>{"n1", "n6", "n4"});
  CHECK(odd_hosts(group_facts({})).empty());
}

}  // namespace
}  // namespace hv::launcher
