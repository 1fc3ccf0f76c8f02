// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpirank/carried_output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
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
  std::size_t owed = 0;  // what the program had left in it at its end, less what was carried since
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
  stream->owed -= std::min(stream->owed, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  std::string text;
  if (got > 0) encode_carried({buffer.data(), static_cast<std::size_t>(got)}, &text);
  // mpirun is gone, and ends the program in its way; this process gets SIGPIPE, as it would.
  if (got <= 0 || write_all(stream->target, text) != 0) {
    stream->read_end.reset();
    stream->owed = 0;
  }
}

void note_owed(Stream* stream) {
  int bytes = 0;
  if (stream->read_end && ::ioctl(stream->read_end.get(), FIONREAD, &bytes) == 0)
    stream->owed = static_cast<std::size_t>(bytes);
}

// Until both have ended; or the program has, and its children have had their time. What is in the
// streams by each of these moments is carried, as slowly as mpirun takes it.
ExitStatus carry(std::array<Stream, 2>* streams, pid_t program, int children,
                 Duration time_for_children) {
  int status = 0;
  std::optional<TimePoint> limit;  // of its children, once the program has ended
  bool is_last = false;
  for (;;) {
    std::array<pollfd, 3> ready{{{(*streams)[0].read_end.get(), POLLIN, 0},
                                 {(*streams)[1].read_end.get(), POLLIN, 0},
                                 {children, POLLIN, 0}}};
    const bool is_open = ready[0].fd >= 0 || ready[1].fd >= 0;
    const bool is_owed = (*streams)[0].owed > 0 || (*streams)[1].owed > 0;
    const bool is_over = limit && !is_owed && now() >= *limit;
    if (limit && (!is_open || (is_over && is_last))) return ExitStatus::from_wait(status);
    if (is_over) {
      is_last = true;
      for (Stream& stream : *streams) note_owed(&stream);
      continue;
    }
    const timespec left = time_left(is_owed || !limit ? TimePoint::max() : *limit);
    const int count = ::ppoll(ready.data(), ready.size(), &left, nullptr);
    for (std::size_t i = 0; i < 2 && count > 0; ++i)
      if (ready[i].revents) carry_some(&(*streams)[i]);
    signalfd_siginfo ignored;
    while (::read(children, &ignored, sizeof ignored) > 0) continue;
    if (limit || ::waitpid(program, &status, WNOHANG) != program) continue;
    limit = now() + time_for_children;
    for (Stream& stream : *streams) note_owed(&stream);
  }
}

// Open MPI's daemons name by it the descriptor, of those that a rank is born with, for MPI's own
// words. The program has none but its streams.
Environment environment_of_program(Environment environment) {
  environment.unset("OPAL_OUTPUT_STDERR_FD");
  return environment;
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

void carry_own_words(const std::string& words) {
  std::string text;
  encode_carried(words, &text);
  (void)write_all(2, text);
}

wire::Problem carry_output(const std::vector<std::string>& program, const MpirunRank& rank,
                           Duration time_for_children) {
  std::array<Stream, 2> streams{{{{}, {}, 1}, {{}, {}, 2}}};
  if (!open_stream(&streams[0]) || !open_stream(&streams[1]))
    return {"make a pipe: " + errno_text(errno), "raise the limit of open files (ulimit -n)"};
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
  command.environment = environment_of_program(rank.environment).entries();
  ChildOptions options;
  options.stdin_fd = 0;
  options.stdout_fd = streams[0].write_end.get();
  options.stderr_fd = streams[1].write_end.get();
  options.new_session = false;
  options.cores = rank.cores;
  const SpawnResult child = spawn_child(command, options);
  if (child.pid < 0)
    return {printable(child.doing, 1000) + ": " + errno_text(child.error), kRunByHand};
  carry_own_words(rank.report);
  for (Stream& stream : streams) stream.write_end.reset();
  end_as(carry(&streams, child.pid, children.get(), time_for_children));
}

}  // namespace hv::launcher
