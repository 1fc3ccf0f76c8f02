// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/queries/child_answer.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "src/base/text.h"
#include "src/process/captured.h"
#include "src/process/child.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostAnswerComplaints = 4096;

}  // namespace

ChildAnswer::ChildAnswer(EventLoop& loop, const ChildQuestion& question, Done done)
    : loop_(loop), done_(std::move(done)), name_(question.name) {
  start(question);
}

ChildAnswer::~ChildAnswer() {
  loop_.cancel(deadline_);
  close(out_);
  close(err_);
  kill();
}

void ChildAnswer::start(const ChildQuestion& question) {
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0) return finish("make a pipe: " + errno_text(errno));
  out_.reset(out[0]);
  const UniqueFd their_out(out[1]);
  if (::pipe2(err, O_CLOEXEC) != 0) return finish("make a pipe: " + errno_text(errno));
  err_.reset(err[0]);
  const UniqueFd their_err(err[1]);
  ChildOptions options;
  options.stdin_fd = question.stdin_fd;
  options.stdout_fd = their_out.get();
  options.stderr_fd = their_err.get();
  const SpawnResult spawned = spawn_child(question.command, options);
  if (spawned.pid < 0) return finish(spawned.doing + ": " + errno_text(spawned.error));
  pid_ = spawned.pid;
  watch(out_, &output_, question.most_bytes);
  watch(err_, &complaints_, kMostAnswerComplaints);
  deadline_ =
      loop_.call_after(question.time, [this, text = name_ + " did not answer within " +
                                                    format_duration(question.time) +
                                                    question.whose_time + " and was killed"] {
        kill();
        finish(text);
      });
}

void ChildAnswer::watch(UniqueFd& stream, std::string* text, std::size_t most) {
  loop_.watch(stream.get(), EPOLLIN,
              [this, &stream, text, most](std::uint32_t) { receive(stream, text, most); });
}

// Keeps the first bytes of complaints; an answer beyond the limit is a failure.
void ChildAnswer::receive(UniqueFd& stream, std::string* text, std::size_t most) {
  char bytes[16 << 10];
  const ssize_t got = ::read(stream.get(), bytes, sizeof bytes);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    close(stream);
    return finish_if_over();
  }
  const auto size = static_cast<std::size_t>(got);
  text->append(bytes, std::min(size, most - text->size()));
  if (text != &output_ || text->size() < most) return;
  kill();
  finish(name_ + " said more than " + format_bytes(most) + " and was killed");
}

void ChildAnswer::close(UniqueFd& stream) {
  if (!stream) return;
  loop_.unwatch(stream.get());
  stream.reset();
}

bool ChildAnswer::child_ended(pid_t pid, const ExitStatus& status) {
  if (pid_ < 0 || pid != pid_) return false;
  pid_ = -1;
  status_ = status;
  finish_if_over();
  return true;
}

void ChildAnswer::finish_if_over() {
  if (out_ || err_ || !status_) return;
  if (status_->clean()) return finish("");
  const std::string complaint = printable(last_line(complaints_), 500);
  finish(name_ + " ended with " + status_->text() + (complaint.empty() ? "" : ": " + complaint));
}

// Answers from the loop, so that the caller of the constructor holds the child before it answers.
void ChildAnswer::finish(const std::string& problem) {
  close(out_);
  close(err_);
  loop_.cancel(deadline_);
  deadline_ = loop_.call_after(Duration::zero(), [this, problem] {
    const Done done = std::move(done_);
    const std::string answer = std::move(output_);
    done(problem, answer);
  });
}

// A child that hangs in the kernel is not waited for.
void ChildAnswer::kill() {
  if (pid_ < 0) return;
  ::kill(-pid_, SIGKILL);
  (void)::waitpid(pid_, nullptr, WNOHANG);
  pid_ = -1;
}

}  // namespace hv::launcher
