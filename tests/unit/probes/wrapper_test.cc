// SPDX-License-Identifier: Apache-2.0
#include "launcher/probes/wrapper.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace hv::launcher {
namespace {

using Words = std::vector<std::string>;

Words behind(const Words& argv) {
  const auto inner = wrapped_program({argv, "/", {}});
  return inner ? inner->argv : Words{};
}

TEST_CASE("a wrapper's options and operands precede the program") {
  const Words program{"python3", "-u", "train.py", "--", "-n"};
  for (const Words& wrapper :
       {Words{"numactl", "--localalloc"},
        {"/usr/bin/numactl", "-N", "0", "-m0", "--physcpubind=1-3", "--interleave", "all"},
        {"nice"},
        {"nice", "-n", "5"},
        {"nice", "-n5", "--"},
        {"nice", "--adjustment=5"},
        {"nohup"},
        {"setsid", "-fw"},
        {"stdbuf", "-oL", "-e", "0"},
        {"taskset", "-a", "0x3"},
        {"taskset", "-c", "0-3"},
        {"timeout", "-k", "5", "--signal=INT", "1h"},
        {"ionice", "-c2", "-n", "0", "-t"},
        {"env"},
        {"env", "A=1", "B="}}) {
    CAPTURE(wrapper.back());
    Words argv = wrapper;
    argv.insert(argv.end(), program.begin(), program.end());
    CHECK(behind(argv) == program);
  }
}

TEST_CASE("an unknown wrapper, or one with unknown options, is no wrapper") {
  for (const Words& argv : {Words{},
                            {"python3", "nice"},
                            {"nice"},
                            {"nice", "-x", "python3"},
                            {"numactl", "--no-such", "python3"},
                            {"numactl", "--localalloc=1", "python3"},
                            {"numactl", "-N"},
                            {"taskset", "-c"},
                            {"timeout", "5"},
                            {"env", "-i", "python3"},
                            {"env", "A=1"}})
    CHECK(behind(argv).empty());
}

TEST_CASE("assignments of env belong to its program's environment") {
  const auto inner = wrapped_program({{"env", "A=1", "B=x=y", "python3", "C=2"}, "/d", {"A=0"}});
  REQUIRE(inner);
  CHECK(inner->environment == Words{"A=0", "A=1", "B=x=y"});
  CHECK(inner->argv == Words{"python3", "C=2"});
  CHECK(inner->directory == "/d");
}

}  // namespace
}  // namespace hv::launcher
