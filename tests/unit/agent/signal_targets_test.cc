// Tests of launcher/agent/ranks/signal_targets: who gets a signal that is for a rank.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ranks/signal_targets.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace hv::launcher;

namespace {

using Pids = std::vector<pid_t>;

constexpr pid_t kRank = 10;

// Processes below the agent, which is process 1.
struct Processes {
  std::vector<ProcessEntry> all;
  std::map<pid_t, SignalTraits> traits;

  SignalTraits& add(pid_t pid, pid_t parent, const std::string& executable, bool catches = false) {
    ProcessEntry process;
    process.pid = pid;
    process.parent = parent;
    process.state = 'S';
    all.push_back(process);
    return traits[pid] = {SignalTraits::Access::kFull, catches, false, executable};
  }
  std::vector<SignalTargets> targets(const Pids& ranks) const {
    return choose_signal_targets(all, ranks, [this](pid_t pid) { return traits.at(pid); });
  }
  SignalTargets targets() const { return targets({kRank}).at(0); }
};

// Runs the test in a child of another user, who may neither read nor signal this process.
int exit_code_as_other_user(const std::function<bool(pid_t parent)>& test) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (::setresuid(kNobody, kNobody, kNobody) != 0) ::_exit(2);
    ::_exit(test(parent) ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("a rank with a handler gets its signal alone") {
  Processes processes;
  processes.add(kRank, 1, "python", true);
  processes.add(11, kRank, "python", true);  // a worker that was forked
  processes.add(12, kRank, "ffmpeg", true);
  const SignalTargets targets = processes.targets();
  CHECK(targets.pids == Pids{kRank});
  CHECK_FALSE(targets.are_descendants());
}

TEST_CASE("the program in a wrapper without handler gets the signal, and no worker of its own") {
  Processes processes;
  processes.add(kRank, 1, "bash");
  processes.add(11, kRank, "conda");
  processes.add(12, 11, "bash");
  processes.add(13, 12, "python", true);
  processes.add(14, 13, "python", true);
  const SignalTargets targets = processes.targets();
  CHECK(targets.pids == Pids{13});
  CHECK(targets.are_descendants());
}

TEST_CASE("workers of a program without handler never get its signal") {
  Processes processes;
  processes.add(kRank, 1, "python");
  processes.add(11, kRank, "python", true);
  processes.add(12, 11, "python", true);
  CHECK(processes.targets().pids == Pids{kRank});
}

TEST_CASE("each branch below a wrapper has its own nearest program") {
  Processes processes;
  processes.add(kRank, 1, "bash");
  processes.add(11, kRank, "python", true);
  processes.add(12, kRank, "tee");
  processes.add(13, kRank, "sh");
  processes.add(14, 13, "trainer", true);
  const SignalTargets targets = processes.targets();
  CHECK(std::set<pid_t>(targets.pids.begin(), targets.pids.end()) == std::set<pid_t>{11, 14});
}

TEST_CASE("without any handler the rank's own process gets the signal") {
  Processes processes;
  processes.add(kRank, 1, "bash");
  processes.add(11, kRank, "sleep");
  CHECK(processes.targets().pids == Pids{kRank});
}

TEST_CASE("what a rank's own process does with the signal is known, whatever its program does") {
  using hv::wire::SigtermUse;
  Processes processes;
  processes.add(kRank, 1, "bash");
  processes.add(11, kRank, "python", true);
  processes.add(20, 1, "trainer", true);
  processes.add(30, 1, "sh").ignores = true;
  processes.add(40, 1, "sleep");
  std::vector<SigtermUse> uses;
  for (const SignalTargets& targets : processes.targets({kRank, 20, 30, 40}))
    uses.push_back(targets.use);
  CHECK(uses == std::vector{SigtermUse::kDefault, SigtermUse::kHandled, SigtermUse::kIgnored,
                            SigtermUse::kDefault});
}

TEST_CASE("a descendant that may not be read or signalled leaves the signal to the rank alone") {
  const auto with = [](const std::function<void(SignalTraits&)>& deny) {
    Processes processes;
    processes.add(kRank, 1, "bash");
    deny(processes.add(11, kRank, "sudo", true));
    processes.add(12, kRank, "trainer", true);
    const SignalTargets targets = processes.targets();
    CHECK(targets.pids == Pids{kRank});
    CHECK(targets.denied == 11);
  };
  with([](SignalTraits& traits) { traits.access = SignalTraits::Access::kUnreadable; });
  with([](SignalTraits& traits) { traits.access = SignalTraits::Access::kUnsignallable; });
  with([](SignalTraits& traits) { traits.executable.clear(); });
}

TEST_CASE("a denied process of one rank leaves other ranks alone") {
  Processes processes;
  processes.add(kRank, 1, "bash");
  processes.add(11, kRank, "sudo").access = SignalTraits::Access::kUnsignallable;
  processes.add(20, 1, "bash");
  processes.add(21, 20, "python", true);
  const std::vector<SignalTargets> targets = processes.targets({kRank, 20});
  CHECK(targets.at(1).pids == Pids{21});
  CHECK_FALSE(targets.at(1).denied);
}

TEST_CASE("a child that the process table does not show leaves the signal to the rank alone") {
  Processes processes;
  processes.add(kRank, 1, "bash");
  processes.add(11, kRank, "sh").hidden_child = 12;
  CHECK(processes.targets().pids == Pids{kRank});
  CHECK(processes.targets().denied == 12);
}

TEST_CASE(
    "a rank that may not be read gets the signal, and one that may not be signalled does not") {
  Processes processes;
  SignalTraits& traits = processes.add(kRank, 1, "python", true);
  traits.access = SignalTraits::Access::kUnreadable;
  CHECK(processes.targets().pids == Pids{kRank});
  CHECK(processes.targets().denied == kRank);
  traits.access = SignalTraits::Access::kUnsignallable;
  CHECK(processes.targets().pids.empty());
  CHECK(processes.targets().denied == kRank);
  CHECK_FALSE(processes.targets().are_descendants());
}

TEST_CASE("an executable that may not be read counts only where a child's is compared with it") {
  Processes processes;
  SignalTraits& traits = processes.add(kRank, 1, "", true);
  processes.add(11, kRank, "python", true);
  CHECK_FALSE(processes.targets().denied);
  CHECK(processes.targets().use == hv::wire::SigtermUse::kHandled);
  traits.catches = false;
  CHECK(processes.targets().denied == kRank);
  processes.all.pop_back();
  CHECK_FALSE(processes.targets().denied);
}

TEST_CASE("processes that have ended meanwhile are passed over") {
  Processes processes;
  processes.add(kRank, 1, "bash");
  processes.add(11, kRank, "python", true).access = SignalTraits::Access::kGone;
  CHECK(processes.targets().pids == Pids{kRank});
  CHECK_FALSE(processes.targets().denied);
}

TEST_CASE("a process's handlers and executable are read from /proc") {
  const SignalTraits before = read_signal_traits(::getpid(), SIGUSR2);
  CHECK(before.access == SignalTraits::Access::kFull);
  CHECK_FALSE(before.catches);
  const auto old = std::signal(SIGUSR2, [](int) {});
  const SignalTraits with_handler = read_signal_traits(::getpid(), SIGUSR2);
  std::signal(SIGUSR2, old);
  CHECK(with_handler.catches);
  sigset_t one;
  ::sigemptyset(&one);
  ::sigaddset(&one, SIGUSR2);
  ::sigprocmask(SIG_BLOCK, &one, nullptr);
  CHECK(read_signal_traits(::getpid(), SIGUSR2).catches);  // as for sigwait
  ::sigprocmask(SIG_UNBLOCK, &one, nullptr);
  CHECK(with_handler.executable == before.executable);
  CHECK(read_signal_traits(1 << 30, SIGUSR2).access == SignalTraits::Access::kGone);
}

TEST_CASE("a zombie is gone") {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info;
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  CHECK(read_signal_traits(child, SIGTERM).access == SignalTraits::Access::kGone);
  ::waitpid(child, nullptr, 0);
}

TEST_CASE("a process of another user is told from one that is gone" *
          doctest::skip(::geteuid() != 0)) {
  CHECK(exit_code_as_other_user([](pid_t parent) {
          return read_signal_traits(parent, SIGTERM).access ==
                     SignalTraits::Access::kUnsignallable &&
                 read_signal_traits(1 << 30, SIGTERM).access == SignalTraits::Access::kGone;
        }) == 0);
}
