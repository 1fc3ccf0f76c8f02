// SPDX-License-Identifier: Apache-2.0
#include "src/process/captured.h"

#include <doctest/doctest.h>

#include <csignal>

namespace hv {
namespace {

Captured run_shell(const std::string& script, Duration most = std::chrono::seconds(20),
                   bool with_errors = false) {
  Command command;
  command.argv = {"/bin/sh", "-c", script};
  command.environment = {"PATH=/usr/bin:/bin"};
  return capture_output(command, most, with_errors);
}

TEST_CASE("capture_output gives what a program says, and how it ended") {
  const Captured one = run_shell("echo out; echo err >&2; exit 3");
  CHECK((one.text == "out\n" && one.status->code == 3 && !one.is_well() && one.trouble.empty()));
  CHECK(run_shell("echo err >&2", std::chrono::seconds(20), true).text == "err\n");
}

TEST_CASE("capture_output does not wait for ever, nor read for ever") {
  CHECK(run_shell("sleep 600", std::chrono::milliseconds(50)).trouble ==
        "it did not end within 50 ms");
  CHECK(run_shell("exec >&- 2>&-; exec sleep 600", std::chrono::milliseconds(50)).trouble ==
        "it did not end within 50 ms");
  const Captured endless = run_shell("exec yes");
  CHECK((!endless.status && endless.text.size() < 2 * kMostCaptured));
  CHECK(endless.trouble == "it said more than 65536 bytes");
}

TEST_CASE("capture_output waits for a program that has closed its output") {
  const Captured late = run_shell("exec >&- 2>&-; sleep 0.1; exit 3");
  CHECK((late.trouble.empty() && late.status && late.status->code == 3));
}

TEST_CASE("capture_output says that it cannot know how a program ended, and calls it not well") {
  const auto before = std::signal(SIGCHLD, SIG_IGN);  // the kernel reaps, and tells nobody
  const Captured lost = run_shell("echo out; exit 3");
  std::signal(SIGCHLD, before);
  CHECK((lost.text == "out\n" && !lost.status && !lost.is_well()));
  CHECK(lost.trouble == "learn how it ended: No child processes");
}

TEST_CASE("capture_output tells why a program cannot be started") {
  Command command;
  command.argv = {"/nowhere/x"};
  CHECK(capture_output(command, std::chrono::seconds(1)).trouble.find("/nowhere/x") !=
        std::string::npos);
}

}  // namespace
}  // namespace hv
