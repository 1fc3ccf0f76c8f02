// Tests of src/process/signals.
// SPDX-License-Identifier: Apache-2.0
#include "src/process/signals.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace {

sigset_t mask_of_this_thread() {
  sigset_t mask;
  REQUIRE(::pthread_sigmask(SIG_SETMASK, nullptr, &mask) == 0);
  return mask;
}

bool is_blocked(int number) {
  const sigset_t mask = mask_of_this_thread();
  return ::sigismember(&mask, number) == 1;
}

volatile std::sig_atomic_t caught = 0;
void catch_signal(int) { caught = caught + 1; }

// Runs in a child, so that what a test does to signals stays there: its exit code is the answer.
template <class Function>
int signalled_child_answer(Function function) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(function());
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

TEST_CASE("SignalBlock blocks every signal but those of mistakes, for its lifetime") {
  {
    const hv::SignalBlock block;
    for (const int number : {SIGINT, SIGTERM, SIGCHLD, SIGUSR1, SIGPIPE, SIGRTMIN, SIGRTMAX})
      CHECK(is_blocked(number));
    for (const int number : {SIGKILL, SIGSEGV, SIGBUS, SIGFPE, SIGILL})
      CHECK_FALSE(is_blocked(number));
  }
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGRTMAX}) CHECK_FALSE(is_blocked(number));
}

TEST_CASE("SignalBlock gives back the mask that it found, also when nested") {
  sigset_t only_user, before;
  sigemptyset(&only_user);
  sigaddset(&only_user, SIGUSR2);
  ::pthread_sigmask(SIG_SETMASK, &only_user, &before);
  {
    const hv::SignalBlock outer;
    { const hv::SignalBlock inner; }
    CHECK(is_blocked(SIGTERM));
  }
  CHECK(is_blocked(SIGUSR2));
  CHECK_FALSE(is_blocked(SIGTERM));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_CASE("a signal that comes meanwhile is delivered when the block ends") {
  struct sigaction catching {
  }, before{};
  catching.sa_handler = &catch_signal;
  ::sigaction(SIGUSR1, &catching, &before);
  caught = 0;
  {
    const hv::SignalBlock block;
    ::raise(SIGUSR1);
    CHECK(caught == 0);
  }
  CHECK(caught == 1);
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_CASE("SignalBlock concerns its own thread") {
  bool blocked_elsewhere = true;
  std::thread other;
  {
    other = std::thread([&blocked_elsewhere] {
      { const hv::SignalBlock block; }
      blocked_elsewhere = is_blocked(SIGTERM);
    });
    const hv::SignalBlock block;
    other.join();
    CHECK(is_blocked(SIGTERM));
  }
  CHECK_FALSE(blocked_elsewhere);
}

TEST_CASE("reset_signals_for_exec takes away handlers and ignored signals") {
  const int first_wrong = signalled_child_answer([] {
    ::signal(SIGUSR1, SIG_IGN);
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGTERM, &catch_signal);
    ::signal(SIGRTMAX, &catch_signal);
    hv::reset_signals_for_exec();
    for (int number = 1; number < NSIG; ++number) {
      struct sigaction now {};
      if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_DFL) return number;
    }
    return 0;
  });
  CHECK(first_wrong == 0);
}

TEST_CASE("reset_signals_for_exec lets a signal that was held back in") {
  const int answer = signalled_child_answer([] {
    const hv::SignalBlock block;
    ::raise(SIGTERM);
    hv::reset_signals_for_exec();
    ::_exit(0);  // before the block ends
    return 0;
  });
  CHECK(answer == -SIGTERM);
}

TEST_CASE("a signal's text has its name and its meaning, or its number") {
  const std::pair<int, std::string> cases[] = {{SIGKILL, "SIGKILL (Killed)"},
                                               {SIGTERM, "SIGTERM (Terminated)"},
                                               {SIGSEGV, "SIGSEGV (Segmentation fault)"},
                                               {SIGBUS, "SIGBUS (Bus error)"},
                                               {SIGHUP, "SIGHUP (Hangup)"},
                                               {0, "signal 0"},
                                               {-1, "signal -1"},
                                               {SIGRTMIN, "signal " + std::to_string(SIGRTMIN)},
                                               {64, "signal 64"},
                                               {1000, "signal 1000"}};
  for (const auto& [number, text] : cases) CHECK(hv::signal_text(number) == text);
}
