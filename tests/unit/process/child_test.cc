// Tests of starting children. SPDX-License-Identifier: Apache-2.0
#include "src/process/child.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>

#include "src/process/exit_status.h"

namespace {

struct Outcome {
  hv::SpawnResult spawned;
  std::string output;
  hv::ExitStatus status;
};

Outcome run(hv::Command command, hv::ChildOptions options = {}) {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  hv::UniqueFd read_end(ends[0]), write_end(ends[1]);
  options.stdout_fd = write_end.get();
  if (command.environment.empty()) command.environment = {"PATH=/usr/bin:/bin"};
  Outcome outcome;
  outcome.spawned = hv::spawn_child(command, options);
  write_end.reset();
  char buffer[4096];
  for (ssize_t got; (got = ::read(read_end.get(), buffer, sizeof buffer)) > 0;) {
    outcome.output.append(buffer, static_cast<std::size_t>(got));
  }
  if (outcome.spawned.pid > 0) {
    int status = 0;
    REQUIRE(::waitpid(outcome.spawned.pid, &status, 0) == outcome.spawned.pid);
    outcome.status = hv::ExitStatus::from_wait(status);
  }
  return outcome;
}

}  // namespace

TEST_CASE("arguments reach the child byte for byte") {
  const Outcome outcome =
      run({{"printf", "%s|", "a b", "q'\"\n", "\xff\xfe", ""}, "/usr/bin/printf", {}, {}});
  CHECK(outcome.output == "a b|q'\"\n|\xff\xfe||");
}

TEST_CASE("a child sees exactly descriptors 0, 1 and 2") {
  const hv::UniqueFd leak(
      ::open("/dev/null", O_RDONLY));  // not close-on-exec, as a library might leave it
  const hv::UniqueFd high(::fcntl(leak.get(), F_DUPFD, 200));
  const Outcome outcome =
      run({{"sh", "-c", "for fd in /proc/self/fd/*; do echo ${fd##*/}; done"}, "", {}, {}});
  // The shell's own glob opens the folder as 3.
  CHECK((outcome.output == "0\n1\n2\n3\n" || outcome.output == "0\n1\n2\n"));
}

TEST_CASE("a child has its own session, no blocked signal and no ignored one") {
  ::signal(SIGUSR1, SIG_IGN);
  const Outcome outcome =
      run({{"sh", "-c",
            "cut -d' ' -f6 /proc/$$/stat; echo $$; exec grep -E 'SigBlk|SigIgn' /proc/self/status"},
           "",
           {},
           {}});
  ::signal(SIGUSR1, SIG_DFL);
  const std::size_t line = outcome.output.find('\n');
  CHECK(outcome.output.substr(0, line) == outcome.output.substr(line + 1, line));
  CHECK(outcome.output.find("SigBlk:\t0000000000000000") != std::string::npos);
  CHECK(outcome.output.find("SigIgn:\t0000000000000000") != std::string::npos);
}

TEST_CASE("a missing program, a folder and a file without the x bit are told apart") {
  const Outcome missing = run({{"/no/such/program"}, "/no/such/program", {}, {}});
  CHECK(missing.spawned.pid == -1);
  CHECK(missing.spawned.error == ENOENT);
  CHECK(missing.spawned.doing == "execute /no/such/program");
  const Outcome folder = run({{"/tmp"}, "/tmp", {}, {}});
  CHECK(folder.spawned.error == EACCES);
  const Outcome directory = run({{"true"}, "/usr/bin/true", {}, "/no/such/directory"});
  CHECK(directory.spawned.error == ENOENT);
  CHECK(directory.spawned.doing == "change to directory /no/such/directory");
}

TEST_CASE("a script without an interpreter line runs under sh, as with execvp") {
  const std::string path = "/tmp/hvrun-child-test-" + std::to_string(::getpid());
  std::ofstream(path) << "echo \"from sh: $1\"\n";
  ::chmod(path.c_str(), 0755);
  const Outcome outcome = run({{path, "x y"}, path, {}, {}});
  ::unlink(path.c_str());
  CHECK(outcome.output == "from sh: x y\n");
}

TEST_CASE("the exit status tells codes and signals apart") {
  CHECK(run({{"sh", "-c", "exit 3"}, "", {}, {}}).status.text() == "exit code 3");
  const hv::ExitStatus killed = run({{"sh", "-c", "kill -9 $$"}, "", {}, {}}).status;
  CHECK(killed.text() == "SIGKILL (Killed)");
  CHECK(killed.shell_code() == 137);
}

TEST_CASE("find_program searches PATH and says why it found nothing") {
  std::string reason;
  CHECK(hv::find_program("sh", "/nowhere:/bin", "/", &reason) == "/bin/sh");
  CHECK(hv::find_program("./sh", "", "/bin", &reason) == "/bin/./sh");
  CHECK(hv::find_program("no-such-program", "/usr/bin:/bin", "/", &reason).empty());
  CHECK(reason.find("/usr/bin:/bin") != std::string::npos);
  CHECK(hv::find_program("/etc/passwd", "", "/", &reason).empty());
  CHECK(reason == "Permission denied");
}
