// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/inventory_run.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "hvrun_version.h"
#include "launcher/agent/helper_program.h"
#include "src/base/bounded_seconds.h"
#include "src/base/text.h"
#include "src/process/child.h"

namespace hv::launcher {
namespace {

constexpr char kName[] = "hvrun-inventory";
constexpr auto kMostTime = std::chrono::minutes(10);
constexpr std::size_t kMostComplaints = 4096;

std::string last_line(const std::string& text) {
  const std::string_view trimmed = trim(text);
  const std::size_t line = trimmed.rfind('\n');
  return std::string(line == std::string_view::npos ? trimmed : trimmed.substr(line + 1));
}

}  // namespace

InventoryRun::InventoryRun(EventLoop& loop, const Environment& environment,
                           const std::string& folder, const wire::InventoryRequest& request,
                           Done done)
    : loop_(loop),
      done_(std::move(done)),
      time_(std::min<Duration>(bounded_seconds(request.timeout_s), kMostTime)) {
  const std::string program = folder + kName;
  if (!request.program.empty()) {
    run_from_memory(request.program, environment);
  } else if (belongs_to_agent(program)) {
    start(program, environment);
  } else {
    finish({true, {}, {}});
  }
}

InventoryRun::~InventoryRun() {
  loop_.cancel(deadline_);
  close(out_);
  close(err_);
  kill();
}

void InventoryRun::run_from_memory(const std::string& bytes, const Environment& environment) {
  UniqueFd file;
  if (const Status status = keep_in_memory(kName, bytes, &file); !status.ok())
    return fail(status.message);
  start(path_in_memory(file), environment);
}

void InventoryRun::start(const std::string& program, const Environment& environment) {
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0) return fail("make a pipe: " + errno_text(errno));
  out_.reset(out[0]);
  const UniqueFd their_out(out[1]);
  if (::pipe2(err, O_CLOEXEC) != 0) return fail("make a pipe: " + errno_text(errno));
  err_.reset(err[0]);
  const UniqueFd their_err(err[1]);
  Command command;
  command.argv = {kName, "--wire"};
  command.program = program;
  command.environment = environment.entries();
  ChildOptions options;
  options.stdout_fd = their_out.get();
  options.stderr_fd = their_err.get();
  const SpawnResult spawned = spawn_child(command, options);
  if (spawned.pid < 0) return fail(spawned.doing + ": " + errno_text(spawned.error));
  pid_ = spawned.pid;
  watch(out_, &output_, wire::kMaxInventoryBytes);
  watch(err_, &complaints_, kMostComplaints);
  deadline_ = loop_.call_after(time_, [this] {
    kill();
    fail(std::string(kName) + " did not answer within " + seconds_text(time_) +
         " (HVRUN_INVENTORY_TIMEOUT) and was killed");
  });
}

void InventoryRun::watch(UniqueFd& stream, std::string* text, std::size_t most) {
  loop_.watch(stream.get(), EPOLLIN,
              [this, &stream, text, most](std::uint32_t) { receive(stream, text, most); });
}

// Of complaints the first ones are kept; an answer beyond its size is none.
void InventoryRun::receive(UniqueFd& stream, std::string* text, std::size_t most) {
  char piece[16 << 10];
  const ssize_t got = ::read(stream.get(), piece, sizeof piece);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    close(stream);
    return finish_if_over();
  }
  const auto size = static_cast<std::size_t>(got);
  text->append(piece, std::min(size, most - text->size()));
  if (text != &output_ || text->size() < most) return;
  kill();
  fail(std::string(kName) + " said more than " + format_bytes(most) + " and was killed");
}

void InventoryRun::close(UniqueFd& stream) {
  if (!stream) return;
  loop_.unwatch(stream.get());
  stream.reset();
}

void InventoryRun::look_for_end() {
  int status = 0;
  if (pid_ < 0 || ::waitpid(pid_, &status, WNOHANG) != pid_) return;
  pid_ = -1;
  status_ = ExitStatus::from_wait(status);
  finish_if_over();
}

void InventoryRun::finish_if_over() {
  if (out_ || err_ || !status_) return;
  wire::InventoryReply reply;
  if (!status_->clean()) {
    const std::string words = printable(last_line(complaints_), 500);
    return fail(std::string(kName) + " ended with " + status_->text() +
                (words.empty() ? "" : ": " + words));
  }
  if (!decode(output_, &reply.inventory))
    return fail(std::string(kName) + " answered with what is no inventory");
  if (reply.inventory.build != HVRUN_BUILD_ID)
    return fail(std::string(kName) + " is of another build (" + printable(reply.inventory.build) +
                ") than the agent");
  finish(std::move(reply));
}

void InventoryRun::fail(const std::string& problem) {
  wire::InventoryReply reply;
  reply.problem = problem;
  finish(std::move(reply));
}

// From the loop, so that whoever starts a run holds it before it answers.
void InventoryRun::finish(wire::InventoryReply reply) {
  close(out_);
  close(err_);
  loop_.cancel(deadline_);
  deadline_ = loop_.call_after(Duration::zero(), [this, reply = std::move(reply)] {
    const Done done = std::move(done_);
    done(reply);
  });
}

// One that hangs in the driver is not waited for: it ends when the driver lets it.
void InventoryRun::kill() {
  if (pid_ < 0) return;
  ::kill(-pid_, SIGKILL);
  (void)::waitpid(pid_, nullptr, WNOHANG);
  pid_ = -1;
}

}  // namespace hv::launcher
