// Tests of launcher/agent/queries/stack_sources: processes of a rank, readers, explanations.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/queries/stack_sources.h"

#include <doctest/doctest.h>

using namespace hv;
using namespace hv::launcher;

namespace {

ProcessEntry stack_process(pid_t pid, pid_t parent, pid_t session, const std::string& name,
                           char state = 'S') {
  ProcessEntry entry;
  entry.pid = pid;
  entry.parent = parent;
  entry.session = session;
  entry.group = session;
  entry.state = state;
  entry.start_time = static_cast<std::uint64_t>(pid);
  entry.name = name;
  return entry;
}

std::vector<pid_t> pids(const std::vector<ProcessEntry>& processes) {
  std::vector<pid_t> all;
  for (const ProcessEntry& each : processes) all.push_back(each.pid);
  return all;
}

}  // namespace

TEST_CASE("a rank's processes are those of its session, without waiting shells and zombies") {
  const std::vector<ProcessEntry> all = {
      stack_process(12, 11, 10, "python3"), stack_process(10, 1, 10, "sh"),
      stack_process(11, 10, 10, "bash"),    stack_process(13, 12, 10, "python3"),
      stack_process(14, 12, 10, "x", 'Z'),  stack_process(20, 1, 20, "sh")};
  CHECK(pids(processes_of_rank(all, 10)) == std::vector<pid_t>{12, 13});
  CHECK(pids(processes_of_rank(all, 20)) ==
        std::vector<pid_t>{20});  // it waits for no other process
  CHECK(processes_of_rank(all, 30).empty());
}

TEST_CASE("the oldest of very many processes of a rank are inspected") {
  std::vector<ProcessEntry> all;
  for (pid_t pid = 100; pid >= 10; --pid) all.push_back(stack_process(pid, 1, 10, "x"));
  const std::vector<pid_t> chosen = pids(processes_of_rank(all, 10));
  CHECK(chosen.size() == kMostProcesses);
  CHECK(chosen.front() == 10);
}

TEST_CASE("denied access of a debugger is reported with the setting that denies it") {
  CHECK(is_forbidden(
      "eu-stack ended with exit code 1: dwfl_linux_proc_attach: Operation not permitted"));
  CHECK(is_forbidden("ptrace: Operation not permitted."));
  CHECK_FALSE(is_forbidden("eu-stack did not answer within 5 s and was killed"));
  CHECK(explain_denial("1\n").find("sysctl kernel.yama.ptrace_scope=0") != std::string::npos);
  CHECK(explain_denial("").find("SYS_PTRACE") != std::string::npos);
}

TEST_CASE("a stopped process is described as stopped") {
  CHECK(describe_state(stack_process(1, 0, 1, "x", 'T')).find("SIGSTOP") != std::string::npos);
  CHECK(describe_state(stack_process(1, 0, 1, "x", 'D')).find("state D") != std::string::npos);
  CHECK(describe_state(stack_process(1, 0, 1, "x", 'S')).empty());
}
