// Tests of src/process/child.
// SPDX-License-Identifier: Apache-2.0
#include "src/process/child.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "src/process/exit_status.h"
#include "tests/unit/temporary_folder.h"

namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
  }
  std::string read_to_end() {
    write_end.reset();
    std::string result;
    char buffer[4096];
    for (ssize_t got; (got = ::read(read_end.get(), buffer, sizeof buffer)) > 0;)
      result.append(buffer, static_cast<std::size_t>(got));
    return result;
  }
  hv::UniqueFd read_end, write_end;
};

hv::ExitStatus wait_for(pid_t pid) {
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return hv::ExitStatus::from_wait(status);
}

std::ptrdiff_t open_descriptors() {
  const std::filesystem::directory_iterator folder("/proc/self/fd"), end;
  return std::distance(folder, end);
}

// The environment and folder matter little here: a shell, its script, a short PATH.
hv::Command shell(const std::string& script) {
  return {{"sh", "-c", script}, "/bin/sh", {"PATH=/usr/bin:/bin"}, {}};
}

struct Outcome {
  hv::SpawnResult spawned;
  std::string output;
  hv::ExitStatus status;
};

Outcome run(hv::Command command, hv::ChildOptions options = {}) {
  Pipe pipe;
  if (options.stdout_fd < 0) options.stdout_fd = pipe.write_end.get();
  if (command.environment.empty()) command.environment = {"PATH=/usr/bin:/bin"};
  Outcome outcome;
  outcome.spawned = hv::spawn_child(command, options);
  outcome.output = pipe.read_to_end();
  if (outcome.spawned.pid > 0) outcome.status = wait_for(outcome.spawned.pid);
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

TEST_CASE("a descriptor that is passed stays open in the child, under its number, and only there") {
  const hv::UniqueFd passed(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  hv::ChildOptions options;
  options.passed_fds = {passed.get()};
  const std::string path = "/proc/self/fd/" + std::to_string(passed.get());
  CHECK(run({{"readlink", path}, "/usr/bin/readlink", {}, {}}, options).output == "/dev/null\n");
  CHECK((::fcntl(passed.get(), F_GETFD) & FD_CLOEXEC) != 0);
  options.passed_fds = {9999};
  CHECK(run({{"true"}, "/usr/bin/true", {}, {}}, options).spawned.error == EBADF);
}

TEST_CASE("a child has no blocked signal and no ignored one") {
  ::signal(SIGUSR1, SIG_IGN);
  // Without a shell between, as shells mend such things themselves.
  const Outcome outcome =
      run({{"grep", "-E", "SigBlk|SigIgn", "/proc/self/status"}, "/usr/bin/grep", {}, {}});
  ::signal(SIGUSR1, SIG_DFL);
  CHECK(outcome.output == "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST_CASE("a child leads a session of its own") {
  const Outcome outcome = run(shell("cut -d' ' -f6 /proc/$$/stat; echo $$"));
  const std::size_t line = outcome.output.find('\n') + 1;
  CHECK(outcome.output.substr(0, line) == outcome.output.substr(line));
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
  const hv::tests::TemporaryFolder folder;
  const std::string path = folder / "script";
  std::ofstream(path) << "echo \"from sh: $1\"\n";
  ::chmod(path.c_str(), 0755);
  const Outcome outcome = run({{path, "x y"}, path, {}, {}});
  CHECK(outcome.output == "from sh: x y\n");
}

TEST_CASE("the exit status tells codes and signals apart") {
  CHECK(run({{"sh", "-c", "exit 3"}, "", {}, {}}).status.text() == "exit code 3");
  const hv::ExitStatus killed = run({{"sh", "-c", "kill -9 $$"}, "", {}, {}}).status;
  CHECK(killed.text() == "SIGKILL (Killed)");
  CHECK(killed.shell_code() == 137);
}

TEST_CASE("a child has the given environment and nothing of the caller's") {
  ::setenv("HVRUN_UNIT_CALLER", "1", 1);
  const Outcome outcome = run({{"env"}, "/usr/bin/env", {"B=2", "A=1=x", "EMPTY=", "C=\xff"}, {}});
  ::unsetenv("HVRUN_UNIT_CALLER");
  CHECK(outcome.output == "B=2\nA=1=x\nEMPTY=\nC=\xff\n");
}

TEST_CASE("a child sees argv[0] as given, whatever file is executed") {
  CHECK(run({{"name in ps", "-c", "echo \"$0\""}, "/bin/sh", {}, {}}).output == "name in ps\n");
}

TEST_CASE("a child starts in its directory, and a relative program is found from there") {
  const hv::tests::TemporaryFolder folder;
  const std::string tool = folder / "tool";
  std::ofstream(tool) << "pwd -P\n";
  ::chmod(tool.c_str(), 0755);
  CHECK(run({{"./tool"}, "", {}, folder.path()}).output ==
        std::filesystem::canonical(folder.path()).string() + "\n");
}

TEST_CASE("without an input a child reads the end of file, with one it reads that") {
  CHECK(run({{"cat"}, "/usr/bin/cat", {}, {}}).output.empty());
  Pipe input;
  REQUIRE(::write(input.write_end.get(), "given", 5) == 5);
  input.write_end.reset();
  hv::ChildOptions options;
  options.stdin_fd = input.read_end.get();
  CHECK(run({{"cat"}, "/usr/bin/cat", {}, {}}, options).output == "given");
}

TEST_CASE("output and errors go to their own descriptors, or to one") {
  Pipe errors;
  hv::ChildOptions options;
  options.stderr_fd = errors.write_end.get();
  CHECK(run(shell("echo out; echo err >&2"), options).output == "out\n");
  CHECK(errors.read_to_end() == "err\n");
  Pipe both;
  options.stdout_fd = options.stderr_fd = both.write_end.get();
  CHECK(run(shell("echo out; echo err >&2"), options).status.clean());
  CHECK(both.read_to_end() == "out\nerr\n");
}

TEST_CASE("the caller's own descriptors 1 and 2 can change places in the child") {
  Pipe first, second;
  const hv::UniqueFd out(::fcntl(1, F_DUPFD_CLOEXEC, 10)), err(::fcntl(2, F_DUPFD_CLOEXEC, 10));
  hv::ChildOptions options;
  options.stdout_fd = 2;
  options.stderr_fd = 1;
  std::fflush(stdout);
  ::dup2(first.write_end.get(), 1);
  ::dup2(second.write_end.get(), 2);
  const hv::SpawnResult spawned = hv::spawn_child(shell("echo out; echo err >&2"), options);
  ::dup2(out.get(), 1);
  ::dup2(err.get(), 2);
  REQUIRE(spawned.pid > 0);
  wait_for(spawned.pid);
  CHECK(first.read_to_end() == "err\n");
  CHECK(second.read_to_end() == "out\n");
}

TEST_CASE("a descriptor that is not open is told, and so is a terminal that is none") {
  hv::ChildOptions options;
  options.stderr_fd = 9999;
  const Outcome bad_descriptor = run({{"true"}, "/usr/bin/true", {}, {}}, options);
  CHECK(bad_descriptor.spawned.error == EBADF);
  CHECK(bad_descriptor.spawned.doing == "give /usr/bin/true its standard streams");
  options = {};
  options.controlling_terminal = true;  // of a pipe
  const Outcome no_terminal = run({{"true"}, "/usr/bin/true", {}, {}}, options);
  CHECK(no_terminal.spawned.error == ENOTTY);
  CHECK(no_terminal.spawned.doing == "make a session for /usr/bin/true");
}

TEST_CASE("a child gets its terminal as the controlling one") {
  const hv::UniqueFd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  REQUIRE(master);
  REQUIRE(::grantpt(master.get()) == 0);
  REQUIRE(::unlockpt(master.get()) == 0);
  const hv::UniqueFd slave(::open(::ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  REQUIRE(slave);
  hv::ChildOptions options;
  options.stdout_fd = slave.get();
  options.controlling_terminal = true;
  CHECK(run(shell("echo x > /dev/tty"), options).status.clean());
  // Without the option its new session has none.
  options.controlling_terminal = false;
  options.stderr_fd = slave.get();
  CHECK_FALSE(run(shell("echo x > /dev/tty"), options).status.clean());
}

TEST_CASE("a child that cannot start in its cgroup joins it before exec, or says that it cannot") {
  const hv::tests::TemporaryFolder folder;  // no cgroup: the kernel starts no process in it
  const std::string procs = folder / "cgroup.procs";
  std::ofstream{procs};
  hv::ChildOptions options;
  options.cgroup = folder.path();
  CHECK(run({{"cat", procs}, "/usr/bin/cat", {}, {}}, options).output == "0");
  std::filesystem::remove(procs);
  const Outcome missing = run({{"true"}, "/usr/bin/true", {}, {}}, options);
  CHECK(missing.spawned.error == ENOENT);
  CHECK(missing.spawned.doing == "put /usr/bin/true into its cgroup");
}

TEST_CASE("a child ends with the thread that started it, unless that is switched off") {
  hv::SpawnResult tied, loose;
  Pipe tied_input, loose_input, output;
  std::thread([&] {
    hv::ChildOptions options;
    options.stdin_fd = tied_input.read_end.get();
    tied = hv::spawn_child({{"cat"}, "/usr/bin/cat", {}, {}}, options);
    options.stdin_fd = loose_input.read_end.get();
    options.stdout_fd = output.write_end.get();
    options.die_with_parent = false;
    loose = hv::spawn_child({{"cat"}, "/usr/bin/cat", {}, {}}, options);
  }).join();
  REQUIRE(tied.pid > 0);
  REQUIRE(loose.pid > 0);
  CHECK(wait_for(tied.pid).text() == "SIGKILL (Killed)");
  loose_input.read_end.reset();
  CHECK(::write(loose_input.write_end.get(), "alive", 5) == 5);
  loose_input.write_end.reset();
  CHECK(output.read_to_end() == "alive");
  CHECK(wait_for(loose.pid).clean());
}

TEST_CASE("a program that PATH holds without the x bit is denied, one that it lacks is missing") {
  const hv::tests::TemporaryFolder folder;
  const std::string name = "no-x-bit";
  std::ofstream{folder / name};
  const Outcome denied = run({{name}, "", {"PATH=/usr/bin:" + folder.path()}, {}});
  CHECK(denied.spawned.pid == -1);
  CHECK(denied.spawned.error == EACCES);
  CHECK(denied.spawned.doing == "find program " + name);
  CHECK(run({{name}, "", {"PATH=/usr/bin:/tmp"}, {}}).spawned.error == ENOENT);
}

TEST_CASE("an argument longer than the kernel takes is refused in words") {
  const Outcome outcome = run({{"true", std::string(1 << 20, 'x')}, "/usr/bin/true", {}, {}});
  CHECK(outcome.spawned.error == E2BIG);
  CHECK(outcome.spawned.doing == "execute /usr/bin/true");
}

TEST_CASE("a failed start leaves no child, and none leaves a descriptor or a blocked signal") {
  const std::ptrdiff_t before = open_descriptors();
  for (int round = 0; round < 3; ++round) {
    CHECK(run({{"x"}, "/no/such/program", {}, {}}).spawned.pid == -1);
    CHECK(run({{"no-such-program"}, "", {}, {}}).spawned.pid == -1);
    CHECK(run({{"true"}, "/usr/bin/true", {}, {}}).status.clean());
  }
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(errno == ECHILD);
  CHECK(open_descriptors() == before);
  sigset_t blocked;
  REQUIRE(::pthread_sigmask(SIG_SETMASK, nullptr, &blocked) == 0);
  for (const int number : {SIGTERM, SIGINT, SIGCHLD}) CHECK_FALSE(::sigismember(&blocked, number));
}

TEST_CASE("a child runs on the cores that it is given, and cores that are not there are an error") {
  const hv::CoreMask own = hv::own_cores();
  std::uint32_t last = 0;
  for (std::uint32_t core = 0; core < own.size() * 64; ++core)
    if ((own[core / 64] >> core % 64 & 1) != 0) last = core;
  hv::ChildOptions options;
  options.cores = hv::mask_of({last});
  const Outcome outcome = run(shell("grep Cpus_allowed_list /proc/self/status"), options);
  CHECK(outcome.output == "Cpus_allowed_list:\t" + std::to_string(last) + "\n");
  options.cores = hv::mask_of({65535});
  const Outcome failed = run(shell("true"), options);
  CHECK(failed.spawned.pid == -1);
  CHECK(failed.spawned.error == EINVAL);
  CHECK(failed.spawned.doing == "bind /bin/sh to its cores");
}
