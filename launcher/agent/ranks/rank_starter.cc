// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ranks/rank_starter.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "launcher/agent/ranks/rank_command.h"
#include "launcher/facts/program_file.h"
#include "src/base/text.h"
#include "src/net/socket.h"
#include "src/process/child.h"

namespace hv::launcher {
namespace {

// The kernel opens the other side itself from Linux 4.13 on. Its name is a fallback: a container
// may have another /dev/pts.
int open_slave(int master) {
  const int slave = ::ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (slave >= 0) return slave;
  char name[64];
  if (::ptsname_r(master, name, sizeof name) != 0) return -1;
  return ::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

}  // namespace

Status set_window_size(int terminal, const wire::WindowSize& size) {
  winsize of_kernel{};
  of_kernel.ws_col = static_cast<unsigned short>(std::min(size.columns, 65535u));
  of_kernel.ws_row = static_cast<unsigned short>(std::min(size.rows, 65535u));
  if (::ioctl(terminal, TIOCSWINSZ, &of_kernel) != 0)
    return system_status("set the size of a rank's terminal", errno);
  return Status::success();
}

Status open_pty(const wire::WindowSize& size, Pty* pty) {
  UniqueFd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  if (!master || ::grantpt(master.get()) != 0 || ::unlockpt(master.get()) != 0) {
    return system_status("open a terminal for a rank", errno);
  }
  UniqueFd slave(open_slave(master.get()));
  if (!slave) return system_status("open a terminal for a rank", errno);
  if (Status status = set_window_size(slave.get(), size); !status.ok()) return status;
  pty->master = std::move(master);
  pty->slave = std::move(slave);
  return Status::success();
}

namespace {

// Both ends of a rank's streams; the agent's are non-blocking, the rank's are not.
struct Streams {
  UniqueFd rank_in, rank_out, rank_err;
  UniqueFd our_in, our_out, our_err;
  UniqueFd held_terminal;
};

// ours_reads: the agent reads, and the rank writes.
Status make_pipe(bool ours_reads, UniqueFd* ours, UniqueFd* ranks) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_status("make a pipe for a rank", errno);
  UniqueFd reading(ends[0]), writing(ends[1]);
  if (!ours_reads) std::swap(reading, writing);
  // Each end is an open file of its own, so this does not affect the rank's end.
  if (Status status = set_nonblocking(reading.get(), true); !status.ok()) return status;
  *ours = std::move(reading);
  *ranks = std::move(writing);
  return Status::success();
}

Status make_pipes(bool wants_input, const StartOptions& options, Streams* streams) {
  if (wants_input) {
    if (Status status = make_pipe(false, &streams->our_in, &streams->rank_in); !status.ok())
      return status;
  }
  if (Status status = make_pipe(true, &streams->our_out, &streams->rank_out); !status.ok())
    return status;
  if (Status status = make_pipe(true, &streams->our_err, &streams->rank_err); !status.ok())
    return status;
  ::fcntl(streams->our_out.get(), F_SETPIPE_SZ,
          static_cast<int>(options.pipe_bytes));  // where refused, output is only slower
  return Status::success();
}

// stdin only when it is forwarded: a read from a terminal without input would block for ever.
Status make_terminal(bool wants_input, const StartOptions& options, Streams* streams) {
  Pty pty;
  if (Status status = open_pty(options.window, &pty); !status.ok()) return status;
  const auto copy = [](const UniqueFd& fd) {
    return UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
  };
  streams->rank_out = copy(pty.slave);
  streams->rank_err = copy(pty.slave);
  if (wants_input) {
    streams->rank_in = copy(pty.slave);
    streams->our_in = copy(pty.master);
  }
  if (!streams->rank_out || !streams->rank_err ||
      (wants_input && (!streams->rank_in || !streams->our_in))) {
    return system_status("open a terminal for a rank", errno);
  }
  streams->held_terminal = std::move(pty.slave);
  streams->our_out = std::move(pty.master);
  return Status::success();
}

SpawnResult spawn(const Command& command, const Streams& streams, const StartOptions& options,
                  const CoreMask& cores) {
  ChildOptions child;
  child.cores = cores;
  child.stdin_fd = streams.rank_in.get();
  child.stdout_fd = streams.rank_out.get();
  child.stderr_fd = streams.rank_err.get();
  child.passed_fds = options.passed_fds;
  child.controlling_terminal = options.pty;
  child.may_be_traced = true;  // stack_run.h
  child.cgroup = options.cgroup;
  child.umask = options.umask;
  SpawnResult result = spawn_child(command, child);
  if (result.pid < 0 && !child.cgroup.empty()) {
    // A cgroup is optional: where it refuses the rank, the rank runs without it.
    child.cgroup.clear();
    result = spawn_child(command, child);
  }
  return result;
}

Status failure(const SpawnResult& result, const Command& command) {
  if (result.error == ENOENT)
    if (const auto problem = interpreter_problem(command.program, command.directory))
      return {StatusCode::kSystem, problem->what};
  return system_status(result.doing, result.error);
}

}  // namespace

Status open_pipe_from_rank(UniqueFd* ours, UniqueFd* ranks) { return make_pipe(true, ours, ranks); }

std::string start_advice(const Status& failure) {
  const auto is_for = [&failure](int error) {
    return failure.message.find(errno_text(error)) != std::string::npos;
  };
  if (is_for(EMFILE))
    return "raise the limit of open files on that host (ulimit -n), or run fewer ranks there: each "
           "takes "
           "about three";
  if (is_for(EAGAIN))
    return "raise the limit of processes on that host (ulimit -u), or run fewer ranks there";
  return "run the program by hand on that host";
}

std::size_t pipe_bytes_for(std::size_t ranks) {
  // Half of /proc/sys/fs/pipe-user-pages-soft's default; beyond that a user's new pipes shrink to a
  // page or two.
  constexpr std::size_t kInAll = 32u << 20, kLeast = 64u << 10, kMost = 1u << 20;
  return std::bit_floor(std::clamp(kInAll / std::max<std::size_t>(ranks, 1), kLeast, kMost));
}

Status start_rank(PumpContext& context, const Command& command, const wire::LaunchRank& launch,
                  const StartOptions& options, const StreamCallbacks& callbacks,
                  std::unique_ptr<RankProcess>* rank) {
  const bool wants_input = launch.stdin_mode == wire::StdinMode::kForwarded;
  Streams streams;
  Status status = options.pty ? make_terminal(wants_input, options, &streams)
                              : make_pipes(wants_input, options, &streams);
  if (!status.ok()) return status;
  const SpawnResult spawned = spawn(command, streams, options, mask_of(launch.cores));
  if (spawned.pid < 0) return failure(spawned, command);

  auto process = std::make_unique<RankProcess>();
  process->rank = launch.rank;
  process->pid = spawned.pid;
  process->credit = options.credit_bytes;
  process->held_terminal = std::move(streams.held_terminal);
  const auto pump = [&](UniqueFd fd, RankStream stream) {
    process->outputs.push_back(std::make_unique<OutputPump>(
        context, std::move(fd), launch.rank, stream, &process->credit, callbacks.on_stream_end));
  };
  pump(std::move(streams.our_out), RankStream::kStdout);
  if (streams.our_err) pump(std::move(streams.our_err), RankStream::kStderr);
  if (streams.our_in) {
    process->input = std::make_unique<InputPump>(context.loop, std::move(streams.our_in),
                                                 options.pty, callbacks.on_input_taken);
  }
  *rank = std::move(process);
  return Status::success();
}

}  // namespace hv::launcher
