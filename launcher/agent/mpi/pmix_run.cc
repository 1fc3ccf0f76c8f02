// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/mpi/pmix_run.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <set>
#include <utility>

#include "launcher/agent/helper_program.h"
#include "launcher/agent/mpi/last_words.h"
#include "src/base/bounded_seconds.h"
#include "src/base/clock.h"
#include "src/base/text.h"
#include "src/process/child.h"

namespace hv::launcher {
namespace {

constexpr char kPmixName[] = "hvrun-pmix";
constexpr auto kMostWiringTime = std::chrono::minutes(10);
constexpr std::size_t kMostPmixComplaints = 4096;
constexpr std::size_t kMostUnsentPmix = 2 * wire::kMaxAgentPayload;

// Not what a launcher of this agent has told its own PMIx and PMI; what sets parameters stays.
Environment environment_of(const Environment& own, const std::string& library_path) {
  Environment result;
  for (const auto& [name, value] : own.all())
    if (name.rfind("PMIX_MCA_", 0) == 0 ||
        (name.rfind("PMIX_", 0) != 0 && name.rfind("PMI_", 0) != 0))
      result.set(name, value);
  if (!library_path.empty()) result.set("LD_LIBRARY_PATH", library_path);
  return result;
}

std::set<std::uint32_t> ranks_on(const wire::MpiWorld& world, std::uint32_t host) {
  std::set<std::uint32_t> ranks;
  for (std::size_t rank = 0; rank < world.host_of_rank.size(); ++rank)
    if (world.host_of_rank[rank] == host) ranks.insert(static_cast<std::uint32_t>(rank));
  return ranks;
}

std::string own_words(const std::string& text) {
  const std::string words = printable(trim(text), 500);
  return words.empty() ? "" : ": " + words;
}

}  // namespace

PmixRun::PmixRun(EventLoop& loop, const Environment& environment, const std::string& programs,
                 const wire::WiringRequest& request, std::uint32_t host, PmixCallbacks callbacks)
    : loop_(loop),
      callbacks_(std::move(callbacks)),
      host_(host),
      meeting_(ranks_on(request.world, host), request.world.host_of_rank.size()) {
  start(environment, programs, request);
}

void PmixRun::start(const Environment& environment, const std::string& programs,
                    const wire::WiringRequest& request) {
  UniqueFd file;
  std::string program = programs + kPmixName;
  if (!request.program.empty()) {
    if (const Status status = keep_in_memory(kPmixName, request.program, &file); !status.ok())
      return fail(status.message);
    program = path_in_memory(file);
  } else if (!belongs_to_agent(program)) {
    return answer({true, {}, {}});
  }
  if (const Status status = folder_.create(); !status.ok()) return fail(status.message);
  const Status status = spawn(program, environment_of(environment, request.library_path));
  if (!status.ok()) return fail(status.message);
  loop_.watch(complaints_.get(), EPOLLIN, [this](std::uint32_t) { hear_complaints(); });
  const Duration time = std::min<Duration>(bounded_seconds(request.timeout_s), kMostWiringTime);
  deadline_ = loop_.call_after(time, [this, time] {
    kill();
    fail(std::string(kPmixName) + " did not answer within " + seconds_text(time) +
         " and was killed");
  });
  send(encode_frame_of(wire::PmixJob{request.world, host_, folder_.path()}));
}

PmixRun::~PmixRun() {
  loop_.cancel(deadline_);
  loop_.cancel(answer_);
  hang_up();
  if (complaints_) loop_.unwatch(complaints_.get());
  kill();
}

Status PmixRun::spawn(const std::string& program, const Environment& environment) {
  int ends[2], pipe[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return system_status("make a socket for " + std::string(kPmixName), errno);
  socket_.reset(ends[0]);
  const UniqueFd theirs(ends[1]);
  if (::pipe2(pipe, O_CLOEXEC) != 0) return system_status("make a pipe", errno);
  complaints_.reset(pipe[0]);
  const UniqueFd their_complaints(pipe[1]);
  Command command;
  command.argv = {kPmixName, "--serve"};
  command.program = program;
  command.environment = environment.entries();
  ChildOptions options;
  options.stdin_fd = theirs.get();
  options.stdout_fd = their_complaints.get();
  options.stderr_fd = their_complaints.get();
  const SpawnResult spawned = spawn_child(command, options);
  if (spawned.pid < 0) return system_status(spawned.doing, spawned.error);
  pid_ = spawned.pid;
  return Status::success();
}

// The first ones are kept.
void PmixRun::hear_complaints() {
  char piece[4096];
  const ssize_t got = ::read(complaints_.get(), piece, sizeof piece);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got > 0) {
    const auto size = static_cast<std::size_t>(got);
    words_.append(
        piece, std::min(size, kMostPmixComplaints - std::min(words_.size(), kMostPmixComplaints)));
    return;
  }
  loop_.unwatch(complaints_.get());
  complaints_.reset();
  look_if_lost();
}

bool PmixRun::receive() {
  char bytes[64 << 10];
  const ssize_t got = ::recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return errno == EINTR;
  bool is_understood = got > 0 && parser_.feed({bytes, static_cast<std::size_t>(got)});
  for (Frame frame; is_understood && parser_.next(&frame);) is_understood = handle(frame);
  if (is_understood) return true;
  hang_up();
  look_if_lost();
  return false;
}

bool PmixRun::handle(const Frame& frame) {
  if (frame.type == static_cast<std::uint8_t>(wire::PmixType::kReady) && !has_answered_) {
    wire::PmixReady ready;
    if (!decode(frame.payload, &ready)) return false;
    take(std::move(ready));
    return true;
  }
  if (!has_answered_) return false;
  wire::PmixClient client;
  wire::PmixFence fence;
  if (frame.type == static_cast<std::uint8_t>(wire::PmixType::kClient)) {
    if (!decode(frame.payload, &client)) return false;
    if (client.has_ended)
      meeting_.finalize(client.rank);
    else
      meeting_.begin(client.rank);
  } else if (frame.type == static_cast<std::uint8_t>(wire::PmixType::kFence)) {
    if (!decode(frame.payload, &fence)) return false;
    meeting_.come_to_fence(fence.number);
    callbacks_.on_fence(
        {wire::kPmixEpoch, fence.number, {{host_, std::string(), std::move(fence.bytes)}}});
  } else {
    return false;
  }
  callbacks_.on_change();
  return true;
}

wire::MpiEnd PmixRun::rank_ended(std::uint32_t rank) {
  read_last_words([this] { return socket_ && receive(); });
  const wire::MpiEnd end = meeting_.end(rank);
  callbacks_.on_change();
  return end;
}

void PmixRun::take(wire::PmixReady ready) {
  if (!ready.problem.empty()) return fail(ready.problem, ready.hint);
  for (auto& [rank, pairs] : ready.variables) variables_[rank] = std::move(pairs);
  defaults_ = std::move(ready.defaults);
  answer({});
}

void PmixRun::pass(const wire::FenceOut& out) {
  wire::PmixFence fence{out.number, {}};
  for (const wire::FencePut& put : out.puts) fence.bytes += put.value;
  send(encode_frame_of(fence));
  meeting_.pass(out.number);
  callbacks_.on_change();
}

void PmixRun::prepare(std::uint32_t rank, Environment* environment) const {
  for (const auto& [name, value] : defaults_)
    if (!environment->has(name)) environment->set(name, value);
  const auto own = variables_.find(rank);
  if (own == variables_.end()) return;
  for (const auto& [name, value] : own->second) environment->set(name, value);
}

void PmixRun::send(const std::string& frame) {
  if (!socket_) return;
  outgoing_ += frame;
  flush();
}

void PmixRun::flush() {
  while (!outgoing_.empty()) {
    const ssize_t wrote =
        ::send(socket_.get(), outgoing_.data(), outgoing_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) break;
    outgoing_.erase(0, static_cast<std::size_t>(wrote));
  }
  // Its end, or what it does not read any more, is seen by reading.
  if (outgoing_.size() > kMostUnsentPmix) return hang_up();
  watch_socket(outgoing_.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

void PmixRun::watch_socket(std::uint32_t events) {
  loop_.watch(socket_.get(), events, [this](std::uint32_t ready) {
    if (ready & EPOLLOUT) flush();
    if (socket_ && (ready & ~static_cast<std::uint32_t>(EPOLLOUT))) receive();
  });
}

void PmixRun::hang_up() {
  if (!socket_) return;
  loop_.unwatch(socket_.get());
  socket_.reset();
}

void PmixRun::let_go() {
  is_let_go_ = true;
  hang_up();
}

bool PmixRun::child_ended(pid_t pid, const ExitStatus& status) {
  if (pid_ < 0 || pid != pid_) return false;
  pid_ = -1;
  status_ = status;
  look_if_lost();
  return true;
}

// Once all that it has said has been heard.
void PmixRun::look_if_lost() {
  if (socket_ || complaints_ || !status_ || is_let_go_) return;
  const std::string words =
      std::string(kPmixName) + " ended with " + status_->text() + own_words(words_);
  if (!has_answered_) return fail(words);
  is_let_go_ = true;
  callbacks_.on_loss(words);
}

void PmixRun::fail(const std::string& problem, const std::string& hint) {
  answer({false, problem, hint});
}

// From the loop, so that whoever starts a run holds it before it answers.
void PmixRun::answer(wire::WiringReply reply) {
  loop_.cancel(deadline_);
  if (std::exchange(has_answered_, true)) return;
  if (!reply.problem.empty() || reply.is_missing) is_let_go_ = true;
  answer_ = loop_.call_after(Duration::zero(),
                             [this, reply = std::move(reply)] { callbacks_.on_ready(reply); });
}

// One that hangs in the kernel is not waited for.
void PmixRun::kill() {
  if (pid_ < 0) return;
  ::kill(-pid_, SIGKILL);
  (void)::waitpid(pid_, nullptr, WNOHANG);
  pid_ = -1;
}

}  // namespace hv::launcher
