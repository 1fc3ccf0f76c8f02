// Sources of stacks of a rank: which processes it has, which of them answer by Python's
// faulthandler (src/contract/contract.h), what the kernel reports. Nothing here blocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/facts/process_table.h"
#include "src/base/environment.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {

constexpr std::size_t kMostProcesses = 16;  // inspected per rank

// The processes of a rank, oldest first, the rank included: members of its session or group, except
// shells that wait for another of them. Pure.
std::vector<ProcessEntry> processes_of_rank(const std::vector<ProcessEntry>& all, pid_t rank);

// The file into which that process writes its Python stacks, open for reading; -1: it has none, or
// no handler for the signal, which must not be sent then.
UniqueFd stacks_file(pid_t pid, const std::string& proc = "/proc");

// The program that reads native stacks, found in the agent's PATH.
struct StackReader {
  std::string name;  // "eu-stack", "gdb"; empty: neither is there
  std::string path;
  std::vector<std::string> arguments_for(pid_t pid) const;
};
StackReader find_stack_reader(const Environment& own);

// "is stopped (SIGSTOP)"; empty: nothing special. Pure.
std::string describe_state(const ProcessEntry& process);
// Describes where the process waits in the kernel, as far as this user may know: "it waits in the
// kernel, in hrtimer_nanosleep (system call 230)". Empty: unknown.
std::string describe_kernel_wait(pid_t pid, const std::string& proc = "/proc");
// Explains why the system denies access to another process, and what allows it. yama:
// kernel.yama.ptrace_scope, empty where there is none. Pure.
std::string explain_denial(std::string_view yama);
// Whether a complaint means denied access. Pure.
bool is_forbidden(std::string_view complaint);

}  // namespace hv::launcher
