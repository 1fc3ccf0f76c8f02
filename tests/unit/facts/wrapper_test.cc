// SPDX-License-Identifier: Apache-2.0
#include "launcher/facts/wrapper.h"

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

TEST_CASE("a command line of Python's is separated into options, and a script or a module") {
  const auto script = [](const std::vector<std::string>& words) {
    return python_target(words).script;
  };
  CHECK(script({"python3", "a.py"}) == "a.py");
  CHECK(script({"python3", "-uB", "-W", "error", "-X", "dev", "a.py"}) == "a.py");
  CHECK(script({"python3", "-Werror", "-Xdev", "a.py", "b.py"}) == "a.py");
  CHECK(script({"python3", "--check-hash-based-pycs", "never", "a.py"}) == "a.py");
  for (const Words& words : {Words{"python3"},
                             {"python3", "-"},
                             {"python3", "-c", "x"},
                             {"python3", "-um", "x"},
                             {"python3", "-m"},
                             {"python3", "-cx", "a.py"}})
    CHECK(script(words).empty());
  for (const Words& words :
       {Words{"python3", "-um", "a.b", "c"}, {"python3", "-X", "dev", "-ma.b", "c"}}) {
    const PythonTarget target = python_target(words);
    CHECK(target.module == "a.b");
    CHECK(words[target.next] == "c");
  }
  for (const char* name : {"/usr/bin/python", "python3", "python3.11", "pypy3"})
    CHECK(is_python_name(name));
  for (const char* name : {"/python3/sh", "python3-config", "ipython"})
    CHECK_FALSE(is_python_name(name));
}

}  // namespace
}  // namespace hv::launcher
