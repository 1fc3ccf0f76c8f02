// Tests of src/contract/rank_environment.
// SPDX-License-Identifier: Apache-2.0
#include "src/contract/rank_environment.h"

#include <doctest/doctest.h>

using hv::RankEnvironment;
using Entries = std::vector<std::string>;
using Pairs = std::vector<std::pair<std::string, std::string>>;

namespace {

RankEnvironment environment_of(const Entries& entries) {
  RankEnvironment environment;
  environment.set_all(entries);
  return environment;
}

}  // namespace

TEST_CASE("of two values of a rank's variable the later counts, wherever they come from") {
  RankEnvironment environment = environment_of({"A=1", "B=1", "A=2"});
  CHECK(environment.entries() == Entries{"A=2", "B=1"});
  environment.set("A", "3");
  environment.set_all(Entries{"B=4", "C=4", "C=5"});
  CHECK(environment.entries() == Entries{"A=3", "B=4", "C=5"});
  environment.set_all(Pairs{{"C", "6"}, {"D", "6"}});
  environment.set_all(environment_of({"A=7"}));
  CHECK(environment.entries() == Entries{"A=7", "B=4", "C=6", "D=6"});
}

TEST_CASE("a default counts only where there is no value, not even an empty one") {
  RankEnvironment environment = environment_of({"A=", "B=1"});
  for (const char* name : {"A", "B", "C"}) environment.set_default(name, "default");
  CHECK(environment.entries() == Entries{"A=", "B=1", "C=default"});
}

TEST_CASE("an entry of a rank's environment without a name is dropped") {
  CHECK(environment_of({"", "junk", "=x", "A=x=y"}).entries() == Entries{"A=x=y"});
  CHECK(environment_of({"junk"}).is_empty());
}
