// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/agent/agent_client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "src/base/environment.h"
#include "src/base/text.h"
#include "src/process/child.h"

namespace hv::tests {
namespace {

std::string agent_file() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "hvrun-agent";
}

void poll_a_little() { ::poll(nullptr, 0, 5); }

}  // namespace

AgentClient::AgentClient(Streams streams, std::vector<std::string> more_environment) {
  ::signal(SIGPIPE, SIG_IGN);
  UniqueFd theirs_in, theirs_out;
  int ends[2];
  if (streams == Streams::kSocket) {
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      throw std::runtime_error("socketpair");
    in_.reset(ends[0]);
    out_.reset(::fcntl(ends[0], F_DUPFD_CLOEXEC, 3));
    theirs_in.reset(ends[1]);
    theirs_out.reset(::fcntl(ends[1], F_DUPFD_CLOEXEC, 3));
  } else {
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    theirs_in.reset(ends[0]);
    out_.reset(ends[1]);
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    in_.reset(ends[0]);
    theirs_out.reset(ends[1]);
  }
  Command command;
  command.argv = {"hvrun-agent"};
  command.program = agent_file();
  command.environment = Environment::of_process().entries();
  for (std::string& entry : more_environment) command.environment.push_back(std::move(entry));
  ChildOptions options;
  options.stdin_fd = theirs_in.get();
  options.stdout_fd = theirs_out.get();
  options.die_with_parent = false;
  const UniqueFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  options.stderr_fd = null.get();
  const SpawnResult spawned = spawn_child(command, options);
  if (spawned.pid < 0) throw std::runtime_error(spawned.doing + ": " + errno_text(spawned.error));
  guard_ = spawned.pid;
  job_id_ = "test" + std::to_string(spawned.pid);
  hello = expect<wire::Hello>();
}

AgentClient::~AgentClient() {
  close_streams();
  if (exit_code_ >= 0) return;
  // A test has failed half-way, or left the agent to itself on purpose: it ends by itself within 5
  // s.
  int status = 0;
  for (const TimePoint deadline = now() + std::chrono::seconds(6);
       ::waitpid(guard_, &status, WNOHANG) == 0;) {
    if (now() > deadline) {
      ::kill(guard_, SIGKILL);
      ::kill(agent(), SIGKILL);
    }
    poll_a_little();
  }
}

void AgentClient::close_streams() {
  in_.reset();
  out_.reset();
}

void AgentClient::send_bytes(const std::string& bytes) {
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t wrote = ::write(out_.get(), bytes.data() + sent, bytes.size() - sent);
    if (wrote <= 0) return;  // the end of the agent's messages shows that it has left
    sent += static_cast<std::size_t>(wrote);
  }
}

std::string AgentClient::told() const {
  std::string text = "the agent said:";
  for (const Frame& frame : frames_) {
    text += " " + std::to_string(frame.type);
    wire::Problem problem;
    if (frame.type == static_cast<std::uint8_t>(wire::Type::kProblem) &&
        decode(frame.payload, &problem))
      text += " (" + problem.what + ")";
  }
  for (const std::string& note : notes) text += " note '" + note + "'";
  return text + (eof_ ? " and closed" : "");
}

void AgentClient::sort(Frame frame) {
  const auto type = static_cast<wire::Type>(frame.type);
  if (type == wire::Type::kPong || type == wire::Type::kPing) {
    if (type == wire::Type::kPong) ++pongs;
    if (type == wire::Type::kPing && !silent_) send(wire::Pong{});
  } else if (type == wire::Type::kNote) {
    wire::Note note;
    if (decode(frame.payload, &note)) notes.push_back(note.text);
  } else if (type == wire::Type::kOutput) {
    wire::Output output;
    if (!decode(frame.payload, &output)) throw std::runtime_error("a malformed Output came");
    outputs_[{output.rank, output.stream}] += output.bytes;
    ended_[{output.rank, output.stream}] |= output.end;
    give_credit(output.rank, output.bytes.size());
  } else {
    frames_.push_back(std::move(frame));
  }
}

void AgentClient::read_more(TimePoint deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now()).count();
  pollfd entry{in_.get(), POLLIN, 0};
  if (left < 0 || ::poll(&entry, 1, static_cast<int>(std::min<long long>(left + 1, 50))) <= 0)
    return;
  static std::string buffer(256 << 10, '\0');
  const ssize_t got = ::read(in_.get(), buffer.data(), buffer.size());
  if (got <= 0) {
    eof_ = true;
    return;
  }
  if (!parser_.feed({buffer.data(), static_cast<std::size_t>(got)}))
    throw std::runtime_error("the agent broke the stream");
  Frame frame;
  while (parser_.next(&frame)) sort(std::move(frame));
}

std::optional<Frame> AgentClient::await(std::uint8_t type, TimePoint deadline) {
  for (;;) {
    for (auto frame = frames_.begin(); frame != frames_.end(); ++frame) {
      if (frame->type != type) continue;
      Frame found = std::move(*frame);
      frames_.erase(frame);
      return found;
    }
    if (eof_ || now() >= deadline) return std::nullopt;
    read_more(deadline);
  }
}

wire::SetupReply AgentClient::set_up(wire::SetupRequest setup) {
  setup.job_id = job_id_;
  for (double* const grace_s : {&setup.grace_s, &setup.grace_after_signal_s})
    if (*grace_s == 0) *grace_s = 3;
  send(setup);
  return expect<wire::SetupReply>();
}

void AgentClient::prepare(const wire::Launch& launch) {
  wire::Launch named = launch;
  for (wire::LaunchRank& rank : named.ranks) rank.environment.emplace_back("HVRUN_JOB_ID", job_id_);
  send(named);
  (void)expect<wire::Ready>();
}

wire::Started AgentClient::start(const wire::Launch& launch) {
  prepare(launch);
  send(wire::Go{});
  return expect<wire::Started>();
}

void AgentClient::until(const std::function<bool()>& holds, const std::string& what,
                        std::chrono::milliseconds within) {
  const TimePoint deadline = now() + within;
  while (!holds()) {
    if (now() >= deadline || eof_) throw std::runtime_error(what + " did not happen; " + told());
    read_more(deadline);
  }
}

void AgentClient::give_credit(std::uint32_t rank, std::size_t bytes) {
  withheld_[rank] += static_cast<std::uint32_t>(bytes);
  if (refill_ && withheld_[rank] > 0) send(wire::Credit{rank, std::exchange(withheld_[rank], 0)});
}

std::string AgentClient::output_of(std::uint32_t rank, std::uint8_t stream) {
  refill_ = true;
  for (const auto& [other, bytes] : withheld_) give_credit(other, 0);
  until([&] { return ended_[{rank, stream}]; }, "the end of a stream", std::chrono::seconds(60));
  return outputs_[{rank, stream}];
}

std::string AgentClient::output_so_far(std::uint32_t rank, std::uint8_t stream) {
  return outputs_[{rank, stream}];
}

std::size_t AgentClient::received_bytes(std::uint32_t rank) const {
  std::size_t bytes = 0;
  for (const auto& [key, text] : outputs_) bytes += key.first == rank ? text.size() : 0;
  return bytes;
}

int AgentClient::finish(double grace_s) {
  send(wire::End{grace_s});
  (void)expect<wire::Empty>();
  return wait_for_exit();
}

int AgentClient::wait_for_exit(std::chrono::milliseconds within) {
  const TimePoint deadline = now() + within;
  int status = 0;
  while (::waitpid(guard_, &status, WNOHANG) == 0) {
    if (now() >= deadline) throw std::runtime_error("the agent did not leave; " + told());
    poll_a_little();
  }
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return exit_code_;
}

wire::Launch launch_of(std::vector<std::string> argv, std::uint32_t ranks) {
  wire::Launch launch;
  launch.programs = {{std::move(argv), "/tmp", {}}};
  launch.environment = {"PATH=/usr/local/bin:/usr/bin:/bin"};
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    launch.ranks.push_back({rank, {{"RANK", std::to_string(rank)}}, wire::StdinMode::kNull});
  return launch;
}

wire::Launch launch_shell(const std::string& script, std::uint32_t ranks) {
  return launch_of({"/bin/sh", "-c", script}, ranks);
}

char state_of(pid_t pid) {
  const std::string stat = file_content("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t end = stat.rfind(") ");
  return end == std::string::npos ? '\0' : stat[end + 2];
}

bool is_alive(pid_t pid) {
  const char state = state_of(pid);
  return state != '\0' && state != 'Z' && state != 'X';
}

void wait_until(const std::function<bool()>& holds, const std::string& what,
                std::chrono::milliseconds within) {
  const TimePoint deadline = now() + within;
  while (!holds()) {
    if (now() >= deadline) throw std::runtime_error(what + " did not happen");
    poll_a_little();
  }
}

std::vector<pid_t> pids_in(const std::string& path, std::size_t count) {
  std::vector<pid_t> pids;
  wait_until(
      [&] {
        std::istringstream text(file_content(path));
        pids.assign(std::istream_iterator<pid_t>(text), {});
        return pids.size() >= count;
      },
      std::to_string(count) + " pids in " + path);
  return pids;
}

void expect_gone(const std::vector<pid_t>& pids, std::chrono::milliseconds within) {
  wait_until(
      [&] {
        for (const pid_t pid : pids) {
          if (is_alive(pid)) return false;
        }
        return true;
      },
      "the end of every process", within);
}

}  // namespace hv::tests
