// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ending/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "launcher/agent/ending/descendant_hunt.h"
#include "launcher/agent/ending/job_cgroup.h"
#include "launcher/agent/helper_program.h"
#include "src/base/check.h"
#include "src/base/text.h"
#include "src/process/exit_status.h"
#include "src/process/signals.h"

namespace hv::launcher {
namespace {

constexpr const char* kGuardName = "hvrun-guard";
constexpr int kPassMilliseconds = 5;
constexpr int kPassesForCgroup = 200;

// Sets the name that ps, pkill and killall see: the command line, which is the memory of argv, and
// the name of the thread.
void rename_process(int argc, char** argv) {
  char* const begin = argv[0];
  char* const end = argv[argc - 1] + std::strlen(argv[argc - 1]);
  const std::size_t size = static_cast<std::size_t>(end - begin);
  std::memset(begin, 0, size);
  std::memcpy(begin, kGuardName, std::min(size, std::strlen(kGuardName)));
  ::prctl(PR_SET_NAME, kGuardName);
}

// Closes the streams whose end other processes wait for.
void close_streams() {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd <= 2 && null >= 0; ++fd) ::dup2(null, fd);
  if (null > 2) ::close(null);
}

// Reaps; returns the agent's status if the agent was reaped. nothing_left: no child is left.
std::optional<ExitStatus> reap(pid_t agent, bool* nothing_left) {
  std::optional<ExitStatus> ended;
  *nothing_left = !reap_children([&](pid_t pid, int status) {
    if (pid == agent) ended = ExitStatus::from_wait(status);
  });
  return ended;
}

void pause_for_pass() { ::poll(nullptr, 0, kPassMilliseconds); }

void end_everything(const GuardBoard& board) {
  JobCgroup cgroup = JobCgroup::at(board.cgroup());
  bool nothing_left = false;
  reap(-1, &nothing_left);
  if (!nothing_left) {
    cgroup.kill();
    DescendantHunt hunt;
    while (!nothing_left && !hunt.step()) {
      pause_for_pass();
      reap(-1, &nothing_left);
    }
  }
  PrivateDirectory::remove_tree(board.mpi_directory());
  PrivateDirectory::remove_tree(board.python_directory());
  for (int pass = 0; pass < kPassesForCgroup && !cgroup.remove(); ++pass) pause_for_pass();
}

[[noreturn]] void guard(pid_t agent, const GuardBoard& board) {
  sigset_t all;
  sigfillset(&all);
  for (;;) {
    bool nothing_left = false;
    if (const auto ended = reap(agent, &nothing_left)) {
      end_everything(board);
      ::_exit(ended->shell_code());
    }
    siginfo_t info{};
    const int number = ::sigwaitinfo(&all, &info);
    // Forwarded to the agent, which can end the job in order.
    if (number > 0 && number != SIGCHLD && number != SIGTSTP && number != SIGCONT &&
        number != SIGPIPE)
      ::kill(agent, number);
  }
}

}  // namespace

struct GuardBoard::Text {
  std::atomic<std::uint32_t> size{0};
  char bytes[4000];

  void write(const std::string& text) {
    if (text.size() > sizeof bytes) return;
    std::memcpy(bytes, text.data(), text.size());
    size.store(static_cast<std::uint32_t>(text.size()), std::memory_order_release);
  }
  std::string read() const { return {bytes, size.load(std::memory_order_acquire)}; }
};

struct GuardBoard::Page {
  Text cgroup, mpi, python;
};

GuardBoard::GuardBoard() {
  void* memory =
      ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  HV_CHECK(memory != MAP_FAILED, "a page of shared memory: " + errno_text(errno));
  page_ = new (memory) Page;  // lives as long as the process
}

void GuardBoard::write_cgroup(const std::string& directory) { page_->cgroup.write(directory); }

std::string GuardBoard::cgroup() const { return page_->cgroup.read(); }

void GuardBoard::write_mpi_directory(const std::string& directory) { page_->mpi.write(directory); }

std::string GuardBoard::mpi_directory() const { return page_->mpi.read(); }

void GuardBoard::write_python_directory(const std::string& directory) {
  page_->python.write(directory);
}

std::string GuardBoard::python_directory() const { return page_->python.read(); }

UniqueFd split_off_guard(int argc, char** argv, GuardBoard* board) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_PDEATHSIG, 0);
  // Both processes read signals from a descriptor from their start on; ranks are started with an
  // empty mask. Dispositions are reset too: an inherited SIG_IGN of SIGCHLD would take the
  // children's status away.
  reset_signals_for_exec();
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  int life[2];
  HV_CHECK(::pipe2(life, O_CLOEXEC) == 0, "a pipe: " + errno_text(errno));
  UniqueFd read_end(life[0]), write_end(life[1]);
  const pid_t agent = ::fork();
  HV_CHECK(agent >= 0, "fork: " + errno_text(errno));
  if (agent > 0) {
    read_end.reset();
    rename_process(argc, argv);
    close_streams();
    guard(agent, *board);
  }
  // In a session of its own, so that a signal to the process group of one spares the other.
  ::setsid();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // not inherited by fork
  return read_end;
}

}  // namespace hv::launcher
