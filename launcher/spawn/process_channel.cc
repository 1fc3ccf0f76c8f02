// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/process_channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "launcher/spawn/go_between.h"
#include "launcher/spawn/loader_settings.h"
#include "launcher/spawn/ssh/ssh_advice.h"
#include "src/base/text.h"
#include "src/process/child.h"
#include "src/process/exit_status.h"

namespace hv::launcher {

namespace asio = boost::asio;

namespace {

constexpr std::size_t kStderrKept = 16 << 10, kPipeRoom = 64 << 10;
// Between the end of a program's stream and its end as a process.
constexpr auto kExitDelay = std::chrono::milliseconds(300);

// Programs that still ran when the last owner of their Child let go of it, as an agent may when its
// job starts again. They are reaped when a later program starts.
std::vector<pid_t>& unreaped_programs() {
  static auto* const all = new std::vector<pid_t>;
  return *all;
}

void reap_ended_programs() {
  std::erase_if(unreaped_programs(),
                [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
}

// Takes the function back however run_command ends: it must not outlive the channel.
struct CancelUntilEnd {
  std::function<void()>* cancel;
  ~CancelUntilEnd() { *cancel = nullptr; }
};

}  // namespace

struct ProcessChannel::Child {
  explicit Child(asio::any_io_executor executor)
      : errors(executor), exit(executor), ended(executor, TimePoint::max()) {}
  ~Child() {
    if (pid > 0 && !status && !is_go_between) unreaped_programs().push_back(pid);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid = -1;
  bool is_go_between = false;
  std::string program;
  asio::posix::stream_descriptor errors;  // its stderr
  asio::posix::stream_descriptor exit;    // its pidfd
  asio::steady_timer ended;               // cancelled when the status is there
  std::string stderr_tail;
  std::function<void()> told;
  std::optional<ExitStatus> status;

  // A go-between is reaped later, once nothing of its group is left.
  void look() {
    int raw = 0;
    if (!status && is_go_between) {
      status = look_at_go_between(pid);
    } else if (!status && ::waitpid(pid, &raw, WNOHANG) == pid) {
      status = ExitStatus::from_wait(raw);
    }
    if (!status) return;
    if (!std::exchange(is_drained_, true)) drain();
    ended.cancel();
  }

  void keep(const char* words, std::size_t size) {
    stderr_tail.append(words, size);
    if (stderr_tail.size() > kStderrKept) stderr_tail.erase(0, stderr_tail.size() - kStderrKept);
  }

 private:
  // The end of a program may be seen before its last words, which are in the pipe by then. Others
  // may hold the pipe, too, and write on: no more than it has room for.
  void drain() {
    char buffer[4096];
    for (std::size_t read = 0; errors.is_open() && read < kPipeRoom;) {
      const ssize_t got = ::read(errors.native_handle(), buffer, sizeof buffer);
      if (got <= 0) return;
      keep(buffer, static_cast<std::size_t>(got));
      read += static_cast<std::size_t>(got);
    }
  }

  bool is_drained_ = false;
};

ProcessChannel::ProcessChannel(asio::any_io_executor executor, const Command& command,
                               AtClose at_close, const std::string& doing)
    : stream_(executor), child_(std::make_shared<Child>(executor)) {
  reap_ended_programs();
  int both[2], errors[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) != 0) {
    throw Error(ErrorKind::kStart, doing + ": make a socket: " + errno_text(errno),
                shortage_advice(errno));
  }
  UniqueFd ours(both[0]), theirs(both[1]);
  if (::pipe2(errors, O_CLOEXEC) != 0)
    throw Error(ErrorKind::kStart, doing + ": make a pipe: " + errno_text(errno),
                shortage_advice(errno));
  UniqueFd errors_read(errors[0]), errors_write(errors[1]);

  ChildOptions options;
  options.stdin_fd = options.stdout_fd = theirs.get();
  options.stderr_fd = errors_write.get();
  options.die_with_parent = at_close == AtClose::kTerminate;
  const SpawnResult spawned = spawn_child(command, options);
  if (spawned.pid < 0) {
    const std::string advice = shortage_advice(spawned.error);
    throw Error(
        ErrorKind::kStart, doing + ": " + spawned.doing + ": " + errno_text(spawned.error),
        advice.empty() ? "check that " + command.argv.at(0) + " is there and can be run" : advice);
  }
  child_->pid = spawned.pid;
  child_->is_go_between = at_close == AtClose::kTerminate;
  if (child_->is_go_between) list_go_between(spawned.pid);
  child_->program = command.argv[0].substr(command.argv[0].rfind('/') + 1);
  stream_.assign(asio::local::stream_protocol(), ours.release());
  child_->errors.assign(errors_read.release());
  child_->errors.native_non_blocking(true);
  asio::co_spawn(executor, collect_stderr(child_), asio::detached);
  if (const auto pidfd = static_cast<int>(::syscall(SYS_pidfd_open, spawned.pid, 0)); pidfd >= 0) {
    child_->exit.assign(pidfd);
    asio::co_spawn(executor, await_exit(child_), asio::detached);
  }
}

ProcessChannel::~ProcessChannel() {
  close();
  boost::system::error_code ignored;
  child_->look();
  child_->errors.close(ignored);
  child_->exit.close(ignored);
}

void ProcessChannel::close() {
  if (std::exchange(closed_, true)) return;
  boost::system::error_code ignored;
  stream_.close(ignored);
  child_->told = nullptr;
  child_->look();
  // Its own session: the whole group ends, a ProxyCommand of ssh too.
  if (child_->is_go_between) dismiss_go_between(child_->pid);
  child_->ended.cancel();
}

asio::awaitable<void> ProcessChannel::collect_stderr(std::shared_ptr<Child> child) {
  char buffer[4096];
  boost::system::error_code error;
  while (!error) {
    const std::size_t got = co_await child->errors.async_read_some(
        asio::buffer(buffer), asio::redirect_error(asio::use_awaitable, error));
    child->keep(buffer, got);
    const auto told = child->told;  // which may close the channel, and itself
    if (got > 0 && told) told();
  }
}

asio::awaitable<void> ProcessChannel::await_exit(std::shared_ptr<Child> child) {
  boost::system::error_code error;
  while (!error &&
         !child->status) {  // an event may be meant for the descriptor that had this number before
    co_await child->exit.async_wait(asio::posix::descriptor_base::wait_read,
                                    asio::redirect_error(asio::use_awaitable, error));
    if (!error) child->look();
  }
}

// A stream that ends usually means that the program does, a moment later: its status is worth the
// wait.
asio::awaitable<void> ProcessChannel::let_it_exit() {
  const auto child = child_;
  child->look();
  if (child->status || closed_) co_return;
  boost::system::error_code ignored;
  child->ended.expires_after(kExitDelay);
  co_await child->ended.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

// Looks again now and then: a kernel without pidfds tells nobody of the end.
asio::awaitable<void> ProcessChannel::wait_for_end() {
  while (!child_->status && !closed_) co_await let_it_exit();
}

asio::awaitable<std::size_t> ProcessChannel::read_some(asio::mutable_buffer buffer) {
  if (closed_) co_return 0;
  boost::system::error_code error;
  const std::size_t got =
      co_await stream_.async_read_some(buffer, asio::redirect_error(asio::use_awaitable, error));
  if (error) co_await let_it_exit();
  co_return error ? 0 : got;
}

asio::awaitable<bool> ProcessChannel::write(asio::const_buffer buffer) {
  if (closed_) co_return false;
  boost::system::error_code error;
  co_await asio::async_write(stream_, buffer, asio::redirect_error(asio::use_awaitable, error));
  co_return !error;
}

std::string ProcessChannel::last_words() const {
  const std::string said(trim(child_->stderr_tail));
  std::string words;
  if (child_->status) words = child_->program + " ended with " + child_->status->text();
  if (!said.empty()) words += (words.empty() ? "" : ": ") + said;
  return words;
}

void ProcessChannel::when_it_speaks(std::function<void()> told) { child_->told = std::move(told); }

bool ProcessChannel::ended_well() const { return child_->status && child_->status->clean(); }

namespace {

asio::awaitable<CommandOutput> run_once(const Command& command, std::size_t limit,
                                        const std::string& doing, std::function<void()>* cancel,
                                        bool* is_cancelled) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  ProcessChannel channel(executor, command, AtClose::kTerminate, doing);
  *cancel = [&channel, is_cancelled] {
    *is_cancelled = true;
    channel.close();
  };
  const CancelUntilEnd until_end{cancel};
  CommandOutput output;
  std::string buffer(32 << 10, '\0');
  while (const std::size_t got = co_await channel.read_some(asio::buffer(buffer))) {
    output.text.append(buffer, 0, got);
    if (output.text.size() > limit) channel.close();
  }
  co_await channel.wait_for_end();
  output.words = channel.last_words();
  output.clean = channel.ended_well() && output.text.size() <= limit;
  co_return output;
}

}  // namespace

asio::awaitable<CommandOutput> run_command(Command command, std::size_t limit, std::string doing,
                                           std::function<void()>* cancel) {
  bool is_cancelled = false;
  CommandOutput output = co_await run_once(command, limit, doing, cancel, &is_cancelled);
  if (output.clean || is_cancelled || !is_loader_failure(output.words) ||
      !remove_loader_settings(&command.environment))
    co_return output;
  warn_of_loader_settings(command.argv.at(0), output.words);
  co_return co_await run_once(command, limit, doing, cancel, &is_cancelled);
}

}  // namespace hv::launcher
