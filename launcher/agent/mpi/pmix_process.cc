// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/mpi/pmix_process.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>

#include "launcher/agent/mpi/last_messages.h"
#include "src/base/text.h"
#include "src/process/child.h"
#include "src/process/command.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostPmixComplaints = 4096;
constexpr std::size_t kMostUnsentPmix = 2 * wire::kMaxAgentPayload;

}  // namespace

PmixProcess::~PmixProcess() {
  hang_up();
  if (complaint_pipe_) loop_.unwatch(complaint_pipe_.get());
  kill();
}

Status PmixProcess::start(const std::string& program, const Environment& environment) {
  int ends[2], pipe[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return system_status("make a socket for " + std::string(kPmixName), errno);
  socket_.reset(ends[0]);
  const UniqueFd theirs(ends[1]);
  if (::pipe2(pipe, O_CLOEXEC) != 0) return system_status("make a pipe", errno);
  complaint_pipe_.reset(pipe[0]);
  const UniqueFd their_pipe(pipe[1]);
  if (Status status = spawn(program, environment, theirs.get(), their_pipe.get()); !status.ok())
    return status;
  loop_.watch(complaint_pipe_.get(), EPOLLIN, [this](std::uint32_t) { read_complaints(); });
  return Status::success();
}

Status PmixProcess::spawn(const std::string& program, const Environment& environment, int socket,
                          int pipe) {
  Command command;
  command.argv = {kPmixName, "--serve"};
  command.program = program;
  command.environment = environment.entries();
  ChildOptions options;
  options.stdin_fd = socket;
  options.stdout_fd = pipe;
  options.stderr_fd = pipe;
  const SpawnResult spawned = spawn_child(command, options);
  if (spawned.pid < 0) return system_status(spawned.doing, spawned.error);
  pid_ = spawned.pid;
  return Status::success();
}

void PmixProcess::read_complaints() {
  char bytes[4096];
  const ssize_t got = ::read(complaint_pipe_.get(), bytes, sizeof bytes);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got > 0) {
    const std::size_t left = kMostPmixComplaints - complaints_.size();
    complaints_.append(bytes, std::min(static_cast<std::size_t>(got), left));
    return;
  }
  loop_.unwatch(complaint_pipe_.get());
  complaint_pipe_.reset();
  callbacks_.on_over();
}

bool PmixProcess::receive() {
  char bytes[64 << 10];
  const ssize_t got = ::recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return errno == EINTR;
  bool is_understood = got > 0 && parser_.feed({bytes, static_cast<std::size_t>(got)});
  for (Frame frame; is_understood && parser_.next(&frame);)
    is_understood = callbacks_.on_frame(frame);
  if (is_understood) return true;
  hang_up();
  callbacks_.on_over();
  return false;
}

void PmixProcess::read_last_frames() {
  read_last_messages([this] { return socket_ && receive(); });
}

void PmixProcess::send(const std::string& frame) {
  if (!socket_) return;
  outgoing_ += frame;
  flush();
}

void PmixProcess::flush() {
  while (!outgoing_.empty()) {
    const ssize_t wrote =
        ::send(socket_.get(), outgoing_.data(), outgoing_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) break;
    outgoing_.erase(0, static_cast<std::size_t>(wrote));
  }
  // An end of the connection is seen by reading.
  if (outgoing_.size() > kMostUnsentPmix) return hang_up();
  watch_socket(outgoing_.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

void PmixProcess::watch_socket(std::uint32_t events) {
  loop_.watch(socket_.get(), events, [this](std::uint32_t ready) {
    if (ready & EPOLLOUT) flush();
    if (socket_ && (ready & ~static_cast<std::uint32_t>(EPOLLOUT))) receive();
  });
}

void PmixProcess::hang_up() {
  if (!socket_) return;
  loop_.unwatch(socket_.get());
  socket_.reset();
}

void PmixProcess::kill() {
  if (pid_ < 0) return;
  ::kill(-pid_, SIGKILL);
  (void)::waitpid(pid_, nullptr, WNOHANG);
  pid_ = -1;
}

bool PmixProcess::child_ended(pid_t pid, const ExitStatus& status) {
  if (pid_ < 0 || pid != pid_) return false;
  pid_ = -1;
  status_ = status;
  callbacks_.on_over();
  return true;
}

std::optional<std::string> PmixProcess::outcome() const {
  if (socket_ || complaint_pipe_ || !status_) return std::nullopt;
  const std::string complaint = printable(trim(complaints_), 500);
  return "ended with " + status_->text() + (complaint.empty() ? "" : ": " + complaint);
}

}  // namespace hv::launcher
