// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/carried_output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <optional>

#include "src/base/blocking_write.h"
#include "src/base/clock.h"
#include "src/base/environment.h"
#include "src/base/text.h"
#include "src/process/child.h"
#include "src/process/exit_status.h"

namespace hv::launcher {
namespace {

constexpr char kEscape = 0x10;
constexpr std::size_t kLongestLine = 1000;
constexpr int kNotFound = 127;
// After the program's end its children may still write, and hold the streams open for ever.
constexpr auto kTimeForLastOutput = std::chrono::milliseconds(500);

// In pairs: a byte, and what stands for it behind the escape.
constexpr std::string_view kEscaped = "\nn[b\rr\020d";

char escaped(char byte) {
  for (std::size_t i = 0; i < kEscaped.size(); i += 2)
    if (kEscaped[i] == byte) return kEscaped[i + 1];
  return 0;
}

char unescaped(char letter) {
  for (std::size_t i = 0; i < kEscaped.size(); i += 2)
    if (kEscaped[i + 1] == letter) return kEscaped[i];
  return letter;
}

struct Stream {
  UniqueFd read_end, write_end;
  int target;
};

bool open_stream(Stream* stream) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  stream->read_end.reset(ends[0]);
  stream->write_end.reset(ends[1]);
  return true;
}

void carry_some(Stream* stream) {
  std::array<char, 16 << 10> buffer;
  const ssize_t got = ::read(stream->read_end.get(), buffer.data(), buffer.size());
  if (got < 0 && errno == EINTR) return;
  std::string text;
  if (got > 0) encode_carried({buffer.data(), static_cast<std::size_t>(got)}, &text);
  // mpirun is gone, and ends the program in its way; this process gets SIGPIPE, as it would.
  if (got <= 0 || write_all(stream->target, text) != 0) stream->read_end.reset();
}

// Until both have ended, or the program has and nothing comes any more.
ExitStatus carry(std::array<Stream, 2>* streams, pid_t program, int children) {
  int status = 0;
  std::optional<TimePoint> last_output_at;
  for (;;) {
    std::array<pollfd, 3> ready{{{(*streams)[0].read_end.get(), POLLIN, 0},
                                 {(*streams)[1].read_end.get(), POLLIN, 0},
                                 {children, POLLIN, 0}}};
    const bool is_open = ready[0].fd >= 0 || ready[1].fd >= 0;
    if (last_output_at && (!is_open || now() >= *last_output_at))
      return ExitStatus::from_wait(status);
    const timespec left = time_left(last_output_at.value_or(TimePoint::max()));
    const int count = ::ppoll(ready.data(), ready.size(), &left, nullptr);
    if (count == 0 && last_output_at) return ExitStatus::from_wait(status);
    for (std::size_t i = 0; i < 2 && count > 0; ++i)
      if (ready[i].revents) carry_some(&(*streams)[i]);
    signalfd_siginfo ignored;
    while (::read(children, &ignored, sizeof ignored) > 0) continue;
    if (!last_output_at && ::waitpid(program, &status, WNOHANG) == program)
      last_output_at = now() + kTimeForLastOutput;
  }
}

[[noreturn]] void end_as(const ExitStatus& status) {
  if (status.by_signal) {
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    std::signal(status.code, SIG_DFL);
    ::raise(status.code);
  }
  ::_exit(status.shell_code());
}

}  // namespace

void encode_carried(std::string_view bytes, std::string* out) {
  std::size_t length = 0;
  for (const char byte : bytes) {
    if (const char letter = escaped(byte)) {
      *out += kEscape;
      *out += letter;
      ++length;
    } else {
      *out += byte;
    }
    if (++length >= kLongestLine) {
      *out += '\n';
      length = 0;
    }
  }
  if (length > 0) *out += '\n';
}

void CarriedDecoder::decode(std::string_view text, std::string* bytes) {
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    if (is_escaped_) {
      *bytes += unescaped(c);
      is_escaped_ = false;
    } else if (c == kEscape) {
      is_escaped_ = true;
    } else {
      *bytes += c;
    }
  }
}

int carry_output(const std::vector<std::string>& program) {
  std::array<Stream, 2> streams{{{{}, {}, 1}, {{}, {}, 2}}};
  if (!open_stream(&streams[0]) || !open_stream(&streams[1])) {
    std::fprintf(stderr, "hvrun-agent: make a pipe: %s\n", errno_text(errno).c_str());
    return kNotFound;
  }
  // mpirun tells its whole process group, which the program is in, too.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT})
    std::signal(number, SIG_IGN);
  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &watched, nullptr);
  const UniqueFd children(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  Command command;
  command.argv = program;
  command.environment = Environment::of_process().entries();
  ChildOptions options;
  options.stdin_fd = 0;
  options.stdout_fd = streams[0].write_end.get();
  options.stderr_fd = streams[1].write_end.get();
  options.new_session = false;
  const SpawnResult child = spawn_child(command, options);
  if (child.pid < 0) {
    std::string text;
    encode_carried("hvrun: " + child.doing + ": " + errno_text(child.error) + "\n", &text);
    (void)write_all(2, text);
    return kNotFound;
  }
  for (Stream& stream : streams) stream.write_end.reset();
  end_as(carry(&streams, child.pid, children.get()));
}

}  // namespace hv::launcher
