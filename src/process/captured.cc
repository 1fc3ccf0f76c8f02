// SPDX-License-Identifier: Apache-2.0
#include "src/process/captured.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "src/base/text.h"
#include "src/base/unique_fd.h"
#include "src/process/child.h"

namespace hv {
namespace {

// Until its end. False: the time or the size was passed.
bool read_all(int fd, TimePoint limit, std::string* text) {
  char buffer[4096];
  while (text->size() <= kMostCaptured) {
    pollfd ready{fd, POLLIN, 0};
    const timespec left = time_left(limit);
    const int count = ::ppoll(&ready, 1, &left, nullptr);
    if (count == 0) return false;
    if (count < 0) continue;
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got == 0) return true;
    if (got > 0) text->append(buffer, static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) return true;
  }
  return false;
}

constexpr auto kPass = std::chrono::milliseconds(5);

enum class Reaped { kYes, kLate, kFailed };  // kFailed: errno tells

// A program that has closed its output may live on. A kernel without pidfds tells nobody of its
// end: there it is looked at now and then.
Reaped reap(pid_t pid, TimePoint limit, int* status) {
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  for (;;) {
    const pid_t ended = ::waitpid(pid, status, WNOHANG);
    if (ended > 0) return Reaped::kYes;
    if (ended < 0 && errno != EINTR) return Reaped::kFailed;
    if (now() >= limit) return Reaped::kLate;
    pollfd is_over{pidfd.get(), POLLIN, 0};
    const timespec left = time_left(pidfd ? limit : std::min(limit, now() + kPass));
    ::ppoll(&is_over, 1, &left, nullptr);
  }
}

// It leads a session of its own, with whatever it has started.
void end_at_once(pid_t pid) {
  int status = 0;
  ::kill(-pid, SIGKILL);
  reap(pid, TimePoint::max(), &status);
}

}  // namespace

Captured capture_output(const Command& command, Duration most_time, bool with_errors) {
  Captured result;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    result.trouble = "make a pipe: " + errno_text(errno);
    return result;
  }
  UniqueFd read_end(ends[0]), write_end(ends[1]), null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  ChildOptions options;
  options.stdout_fd = write_end.get();
  options.stderr_fd = with_errors ? write_end.get() : null.get();
  const SpawnResult child = spawn_child(command, options);
  if (child.pid < 0) {
    result.trouble = child.doing + ": " + errno_text(child.error);
    return result;
  }
  write_end.reset();
  const TimePoint limit = now() + most_time;
  int status = 0;
  const bool is_read = read_all(read_end.get(), limit, &result.text);
  const Reaped reaped = is_read ? reap(child.pid, limit, &status) : Reaped::kLate;
  const int error = errno;
  if (reaped == Reaped::kLate) end_at_once(child.pid);
  if (reaped == Reaped::kYes)
    result.status = ExitStatus::from_wait(status);
  else if (reaped == Reaped::kFailed)
    result.trouble = "learn how it ended: " + errno_text(error);
  else if (result.text.size() > kMostCaptured)
    result.trouble = "it said more than " + std::to_string(kMostCaptured) + " bytes";
  else
    result.trouble = "it did not end within " + format_duration(most_time);
  return result;
}

std::string last_line(const std::string& text) {
  const std::string_view trimmed = trim(text);
  const std::size_t line = trimmed.rfind('\n');
  return std::string(line == std::string_view::npos ? trimmed : trimmed.substr(line + 1));
}

}  // namespace hv
