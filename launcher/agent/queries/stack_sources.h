// What tells where a rank's processes stand: which processes those are, which of them answer by
// Python's faulthandler (src/contract/contract.h), what the kernel says. No waiting here.
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

constexpr std::size_t kMostProcesses = 16;  // of a rank, that are looked at

// Those of a rank, oldest first, itself among them: of its session or group, and no shell that
// waits for another one of them. Pure.
std::vector<ProcessEntry> processes_of_rank(const std::vector<ProcessEntry>& all, pid_t rank);

// The file into which that process writes its Python stacks, to be read; -1: it has none, or no
// handler of the signal for it, which then must not be sent.
UniqueFd stacks_file(pid_t pid, const std::string& proc = "/proc");

// The program that reads native stacks, found along PATH of the agent's.
struct StackReader {
  std::string name;  // "eu-stack", "gdb"; empty: neither is there
  std::string path;
  std::vector<std::string> arguments_for(pid_t pid) const;
};
StackReader find_stack_reader(const Environment& own);

// "is stopped (SIGSTOP)"; empty: nothing special. Pure.
std::string describe_state(const ProcessEntry& process);
// Where it is in the kernel, as far as this user may know: "waits in the kernel: hrtimer_nanosleep,
// system call 230". Empty: it says nothing.
std::string describe_kernel_wait(pid_t pid, const std::string& proc = "/proc");
// What to do where the system has forbidden it to look: yama is kernel.yama.ptrace_scope, empty
// where there is none. Pure.
std::string explain_denial(std::string_view yama);
// Its complaint is that. Pure.
bool is_forbidden(std::string_view complaint);

}  // namespace hv::launcher
