// Fork and exec. Between them only async-signal-safe calls are made.
// SPDX-License-Identifier: Apache-2.0
#include "src/process/child.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <vector>

#include "src/process/birth.h"
#include "src/process/signals.h"

namespace hv {
namespace {

enum Step : int { kSession, kDescriptors, kGroup, kCores, kDirectory, kExec, kParentGone };

struct Failure {
  int step;
  int error;
};

struct Prepared {
  std::vector<char*> argv;
  std::vector<char*> shell_argv;  // /bin/sh program args..., for ENOEXEC
  std::vector<char*> environment;
  const char* program;
  std::string procs_file;  // of its cgroup, for a child that does not start there
};

Prepared prepare(const Command& command, const std::string& program, const std::string& cgroup) {
  Prepared result;
  const auto raw = [](const std::string& text) { return const_cast<char*>(text.c_str()); };
  for (const std::string& word : command.argv) result.argv.push_back(raw(word));
  result.argv.push_back(nullptr);
  static char shell[] = "/bin/sh";
  result.shell_argv = {shell, raw(program)};
  for (std::size_t i = 1; i < result.argv.size(); ++i) result.shell_argv.push_back(result.argv[i]);
  for (const std::string& entry : command.environment) result.environment.push_back(raw(entry));
  result.environment.push_back(nullptr);
  result.program = program.c_str();
  result.procs_file = cgroup + "/cgroup.procs";
  return result;
}

// dup2 that also works when a target is among the sources: sources are first moved above 2.
int move_above_standard(int fd) { return fd > 2 ? fd : ::fcntl(fd, F_DUPFD_CLOEXEC, 3); }

bool set_standard_descriptors(const ChildOptions& options) {
  int sources[3] = {options.stdin_fd, options.stdout_fd, options.stderr_fd};
  if (sources[0] < 0) sources[0] = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  for (int target = 0; target < 3; ++target) {
    if (sources[target] < 0 && target == 0) return false;
    if (sources[target] >= 0 && (sources[target] = move_above_standard(sources[target])) < 0)
      return false;
  }
  for (int target = 0; target < 3; ++target) {
    if (sources[target] >= 0 && ::dup2(sources[target], target) < 0) return false;
  }
  return true;
}

// Everything above 2 closes at exec; the pipe that reports failures must live until then.
void close_others_at_exec() {
  if (::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const int most = limit.rlim_cur > 1 << 20 ? 1 << 20 : static_cast<int>(limit.rlim_cur);
  for (int fd = 3; fd < most; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

bool join_cgroup(const char* procs_file) {
  const int fd = ::open(procs_file, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = ::write(fd, "0", 1) == 1;
  ::close(fd);
  return written;
}

// fork() whose child starts in the cgroup. -1: the kernel (before 5.7), a seccomp filter or the
// cgroup refuses it. The child runs none of libc's fork handlers, which it does not need before
// exec, and libc does not know its thread id.
pid_t fork_into_cgroup(const std::string& cgroup) {
  const UniqueFd directory(::open(cgroup.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return -1;
  clone_args arguments{};
  arguments.flags = CLONE_INTO_CGROUP;
  arguments.exit_signal = SIGCHLD;
  arguments.cgroup = static_cast<std::uint64_t>(directory.get());
  return static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
}

[[noreturn]] void run_child(const Command& command, const ChildOptions& options,
                            const Prepared& prepared, bool in_cgroup, pid_t parent, int report) {
  const auto fail = [report](Step step) {
    const Failure failure{step, errno};
    (void)!::write(report, &failure, sizeof failure);
    ::_exit(127);
  };
  if (options.die_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) fail(kParentGone);
  }
  // Kept at exec; where there is no Yama it is refused, and not needed.
  if (options.may_be_traced) ::prctl(PR_SET_PTRACER, static_cast<unsigned long>(parent), 0, 0, 0);
  if (::setsid() < 0) fail(kSession);
  if (!in_cgroup && !join_cgroup(prepared.procs_file.c_str())) fail(kGroup);
  if (!options.cores.empty() && !run_on(options.cores)) fail(kCores);
  if (!set_standard_descriptors(options)) fail(kDescriptors);
  if (options.controlling_terminal && ::ioctl(1, TIOCSCTTY, 0) != 0) fail(kSession);
  if (!command.directory.empty() && ::chdir(command.directory.c_str()) != 0) fail(kDirectory);
  if (options.umask) ::umask(*options.umask);
  close_others_at_exec();
  for (const int fd : options.passed_fds)
    if (::fcntl(fd, F_SETFD, 0) != 0) fail(kDescriptors);
  restore_open_file_limit();
  reset_signals_for_exec();
  ::execve(prepared.program, prepared.argv.data(), prepared.environment.data());
  if (errno == ENOEXEC)
    ::execve("/bin/sh", prepared.shell_argv.data(), prepared.environment.data());
  fail(kExec);
  ::_exit(127);
}

std::string describe(Step step, const Command& command, const std::string& program) {
  switch (step) {
    case kSession:
      return "make a session for " + program;
    case kDescriptors:
      return "give " + program + " its standard streams";
    case kGroup:
      return "put " + program + " into its cgroup";
    case kCores:
      return "bind " + program + " to its cores";
    case kDirectory:
      return "change to directory " + command.directory;
    case kParentGone:
      return "start " + program + " (its parent ended meanwhile)";
    case kExec:
      break;
  }
  return "execute " + program;
}

}  // namespace

SpawnResult spawn_child(const Command& command, const ChildOptions& options) {
  std::string program = command.program;
  if (program.empty()) {
    std::string path = "/usr/local/bin:/usr/bin:/bin", reason;
    for (const std::string& entry : command.environment) {
      if (entry.rfind("PATH=", 0) == 0) path = entry.substr(5);
    }
    program = find_program(command.argv.at(0), path, command.directory, &reason);
    if (program.empty()) return {-1, errno, "find program " + command.argv.at(0)};
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {-1, errno, "make a pipe"};
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(move_above_standard(ends[1]));
  if (write_end.get() != ends[1]) ::close(ends[1]);

  const Prepared prepared = prepare(command, program, options.cgroup);
  const pid_t parent = ::getpid();
  // All signals wait while the child still has our handlers.
  const SignalBlock block;
  // Entering a cgroup later makes the kernel wait for a grace period, 7-15 ms.
  pid_t pid = options.cgroup.empty() ? -1 : fork_into_cgroup(options.cgroup);
  const bool in_cgroup = options.cgroup.empty() || pid >= 0;
  if (pid < 0) pid = ::fork();
  if (pid < 0) return {-1, errno, "fork"};
  if (pid == 0) run_child(command, options, prepared, in_cgroup, parent, write_end.get());
  write_end.reset();
  Failure failure{};
  ssize_t got = 0;
  do {
    got = ::read(read_end.get(), &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof failure)) return {pid, 0, {}};
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return {-1, failure.error, describe(static_cast<Step>(failure.step), command, program)};
}

}  // namespace hv
