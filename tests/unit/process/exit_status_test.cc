// Tests of src/process/exit_status.
// SPDX-License-Identifier: Apache-2.0
#include "src/process/exit_status.h"

#include <doctest/doctest.h>
#include <unistd.h>

namespace {

// What waitpid really says of a child that ends so.
template <class Function>
hv::ExitStatus status_of(Function ending) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ending();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return hv::ExitStatus::from_wait(status);
}

void die_of(int number) {
  ::signal(number, SIG_DFL);
  ::raise(number);
}

}  // namespace

TEST_CASE("an exit code is the low eight bits of what the program gave") {
  for (const int code : {0, 1, 2, 126, 127, 128, 137, 255}) {
    CAPTURE(code);
    const hv::ExitStatus status = status_of([code] { ::_exit(code); });
    CHECK_FALSE(status.by_signal);
    CHECK(status.code == code);
    CHECK(status.shell_code() == code);
    CHECK(status.text() == "exit code " + std::to_string(code));
    CHECK(status.clean() == (code == 0));
  }
  CHECK(status_of([] { ::_exit(256); }).clean());
}

TEST_CASE("a signal is told apart from the exit code that looks like it in a shell") {
  const hv::ExitStatus killed = status_of([] { die_of(SIGKILL); });
  const hv::ExitStatus exited = status_of([] { ::_exit(137); });
  CHECK(killed.shell_code() == exited.shell_code());
  CHECK(killed.by_signal);
  CHECK_FALSE(exited.by_signal);
  CHECK(killed.text() == "SIGKILL (Killed)");
  CHECK(exited.text() == "exit code 137");
}

TEST_CASE("a signal is never clean and shows as 128 and its number") {
  for (const int number : {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGRTMAX}) {
    CAPTURE(number);
    const hv::ExitStatus status = status_of([number] { die_of(number); });
    CHECK(status.by_signal);
    CHECK(status.code == number);
    CHECK_FALSE(status.clean());
    CHECK(status.shell_code() == 128 + number);
    CHECK(status.text() == hv::signal_text(number));
  }
}

TEST_CASE("a dumped core is part of the words") {
  const auto dumped = hv::ExitStatus::from_wait(SIGSEGV | WCOREFLAG);
  CHECK(dumped.core_dumped);
  CHECK(dumped.code == SIGSEGV);
  CHECK(dumped.text() == "SIGSEGV (Segmentation fault), core dumped");
  const auto undumped = hv::ExitStatus::from_wait(SIGSEGV);
  CHECK_FALSE(undumped.core_dumped);
  CHECK(undumped.text() == "SIGSEGV (Segmentation fault)");
}
