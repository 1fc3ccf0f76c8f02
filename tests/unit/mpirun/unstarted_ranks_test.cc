// Ranks whose program was not started, told by hvrun-agent through mpirun.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/unstarted_ranks.h"

#include <doctest/doctest.h>

#include "launcher/mpirank/not_started.h"

namespace hv::launcher {
namespace {

const Mpirun kHydra_unstarted_ranks{MpiKind::kHydra, 0, "mpiexec", "", ""};

std::string told_by(const std::string& host, const std::string& what = "find x: not there") {
  return not_started_text({host, {what, "y"}});
}

TEST_CASE("unstarted_ranks keeps hvrun-agent's words, in pieces too, and tells each reason once") {
  UnstartedRanks ranks(kHydra_unstarted_ranks);
  CHECK_FALSE(ranks.is_told());
  for (const char byte : told_by("a")) CHECK(ranks.pass(0, {&byte, 1}).empty());
  CHECK(ranks.pass(1, told_by("b")).empty());
  CHECK(ranks.pass(2, told_by("b")).empty());
  CHECK(ranks.pass(3, told_by("c", "execute z")).empty());
  CHECK(ranks.is_told());
  CHECK(ranks.texts() == std::vector<std::string>{"on host c: execute z\n  try: y",
                                                  "on hosts a, b: find x: not there\n  try: y"});
  CHECK(ranks.take_rest().empty());
}

TEST_CASE(
    "unstarted_ranks shows all that a program has written, and at its end what looked alike") {
  UnstartedRanks ranks(kHydra_unstarted_ranks);
  CHECK(ranks.pass(0, "hvrun: on host a: x\n  try: y\n") == "hvrun: on host a: x\n  try: y\n");
  CHECK(ranks.pass(0, told_by("a")) == told_by("a"));
  CHECK(ranks.pass(1, "\x01hvrun").empty());
  CHECK(ranks.pass(1, " is\n") == "\x01hvrun is\n");
  CHECK(ranks.pass(2, "\x01hvrun: on host a").empty());
  CHECK(ranks.pass(3, "\x01hvrun: on host a" + std::string(20000, 'x')).size() == 20017);
  CHECK(ranks.take_rest() == std::map<int, std::string>{{2, "\x01hvrun: on host a"}});
  CHECK(ranks.pass(2, "more") == "more");
  CHECK_FALSE(ranks.is_told());
}

TEST_CASE("unstarted_ranks has the words of Hydra's daemons, which are shown, too") {
  UnstartedRanks ranks(kHydra_unstarted_ranks);
  CHECK(ranks.pass(0, "[proxy:0:0@a] x\n") == "[proxy:0:0@a] x\n");
  CHECK(ranks.pass(1, "loss [proxy:") == "loss [proxy:");
  CHECK(ranks.daemons_words() == "[proxy:0:0@a] x\n");
}

}  // namespace
}  // namespace hv::launcher
