// Which processes of a rank get a signal that is for the rank. The choice is pure.
// SPDX-License-Identifier: Apache-2.0
//
// The rank's own process gets it if it catches it: it has a handler, or blocks the signal to take
// it by sigwait(3) or signalfd(2). Otherwise it may be a wrapper (a shell, `conda run`) around the
// program that catches it: then the nearest descendants get it that catch it and run another
// executable than their parent. Workers that a program forks or spawns (a DataLoader's) run their
// parent's executable and do not get it: they inherit its handler, and their end would break the
// program while it saves its checkpoint. If no process catches it, the rank's own process gets the
// signal, and its default effect. So it does where a process on the way may not be read or
// signalled.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/agent/hvrun_link.h"
#include "launcher/facts/process_table.h"
#include "src/wire/messages.h"

namespace hv::launcher {

struct SignalTraits {
  enum class Access : std::uint8_t {
    kFull,
    kGone,
    kUnreadable,    // /proc does not say whether it catches the signal
    kUnsignallable  // it belongs to another user
  };
  Access access = Access::kFull;
  bool catches = false;  // has a handler, or blocks the signal to take it by sigwait or signalfd
  bool ignores = false;
  std::string executable{};  // identifies it on this host; empty: this user may not read it
  // A child that belongs to another user and is missing in the process table (hidepid).
  std::optional<pid_t> hidden_child{};
};

// From /proc and kill(2).
SignalTraits read_signal_traits(pid_t pid, int signal);

// Who gets the signal of one rank.
struct SignalTargets {
  pid_t rank = 0;                 // its own process
  std::vector<pid_t> pids{};      // empty: the rank's own process may not be signalled
  std::optional<pid_t> denied{};  // a process that may not be read or signalled
  // What the rank's own process does with the signal: handles or ignores it, or has its default.
  wire::SigtermUse use = wire::SigtermUse::kDefault;

  bool are_descendants() const { return !pids.empty() && pids.front() != rank; }
};

// all: the process table. ranks: the ranks' own processes.
std::vector<SignalTargets> choose_signal_targets(
    const std::vector<ProcessEntry>& all, const std::vector<pid_t>& ranks,
    const std::function<SignalTraits(pid_t)>& traits_of);
// The same from what this host says now.
std::vector<SignalTargets> find_signal_targets(const std::vector<ProcessEntry>& all,
                                               const std::vector<pid_t>& ranks, int signal);

// hvrun reports, with --verbose, who could not be read or signalled.
void send_signal(const std::vector<SignalTargets>& targets, int signal, HvrunLink& link);

}  // namespace hv::launcher
