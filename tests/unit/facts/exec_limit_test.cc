// Tests of what execve takes, against execve itself.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/facts/exec_limit.h"

#include <doctest/doctest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>

using namespace hv::launcher;
using ExecWords = std::vector<std::string>;

namespace {

std::vector<char*> pointers(const ExecWords& words) {
  std::vector<char*> result;
  for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

// 0, or the errno of execve.
int error_of_exec(const ExecWords& argv, const ExecWords& environment) {
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, "/bin/true", nullptr, nullptr, pointers(argv).data(),
                                  pointers(environment).data());
  if (error == 0) ::waitpid(pid, nullptr, 0);
  return error;
}

bool is_refused(const ExecWords& argv, const ExecWords& environment) {
  return exec_size_problem("/bin/true", argv, environment, exec_limits()).has_value();
}

}  // namespace

TEST_CASE("a long argument list is what is too long, and not the variables") {
  const std::vector<std::string> many(40'000, "12345");
  const auto problem = exec_size_problem("/bin/true", many, {"PATH=/bin"}, {128 << 10, 128 << 10});
  REQUIRE(problem);
  CHECK(problem->what.find("40000 arguments take 546.9 KiB") != std::string::npos);
  CHECK(problem->what.find("PATH") == std::string::npos);
  CHECK(problem->hint.find("put the arguments into a file") == 0);
}

TEST_CASE("a string as long as the kernel takes is taken, and one byte more is not") {
  const std::string longest(exec_limits().one_string - 1, 'x');
  CHECK(error_of_exec({"true", longest}, {}) == 0);
  CHECK_FALSE(is_refused({"true", longest}, {}));
  CHECK(error_of_exec({"true", longest + "x"}, {}) == E2BIG);
  CHECK(is_refused({"true", longest + "x"}, {}));
  CHECK(is_refused({"true"}, {"A=" + longest}));
}

TEST_CASE("arguments and environment together are refused where the kernel refuses them") {
  const ExecLimits limits = exec_limits();
  ExecWords environment;
  const std::string value(65536 - sizeof(char*) - 6, 'x');
  for (std::uint64_t i = 0; i < limits.all_strings / 65536 - 1; ++i)
    environment.push_back("A" + std::to_string(1000 + i % 9000).substr(1) + "=" + value);
  // The last one fills up the rest, but for the slack of a page that the estimate may have.
  const std::string rest(65536 - 4096, 'y');
  environment.push_back("Z=" + rest);
  CHECK(error_of_exec({"true"}, environment) == 0);
  CHECK_FALSE(is_refused({"true"}, environment));
  environment.push_back("Y=" + std::string(8192, 'y'));
  CHECK(error_of_exec({"true"}, environment) == E2BIG);
  CHECK(is_refused({"true"}, environment));
}

TEST_CASE("a refusal has size, limit and the largest names") {
  const ExecLimits limits{131072, 131072};
  ExecWords environment{"TOKENS=" + std::string(100000, 'x'), "PATH=" + std::string(40000, 'x'),
                        "A=1"};
  const auto problem = exec_size_problem("/bin/train", {"train", "--lr"}, environment, limits);
  REQUIRE(problem);
  CHECK(problem->what ==
        "execute /bin/train: its arguments and environment take 136.8 KiB, and this host takes at "
        "most 128 KiB, a quarter of the stack's limit; the largest: TOKENS (97.7 KiB), PATH (39.1 "
        "KiB), argument 0 (6 B)");
  const auto one = exec_size_problem("/bin/train", {"train", std::string(131072, 'x')}, {}, limits);
  REQUIRE(one);
  CHECK(one->what ==
        "execute /bin/train: argument 1 takes 131072 bytes, and Linux takes at most 131071 in "
        "one variable or argument");
}
