// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/hvrun_link.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "src/base/text.h"
#include "src/wire/messages.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kReadBytes = 64 << 10;
constexpr int kPieces = 32;
// What the kernel may hold for hvrun: each refill costs two context switches, which a busy machine
// makes dear.
constexpr int kKernelBytes = 1 << 20;
// Frames that are written before the loop looks at other things again.
constexpr int kWritesInARow = 16;

bool is_socket(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode);
}

int open_anew(int fd) {
  return ::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
}

}  // namespace

HvrunLink::HvrunLink(EventLoop& loop, int in, int out, LinkCallbacks callbacks)
    : loop_(loop),
      callbacks_(std::move(callbacks)),
      in_(in),
      out_(out),
      in_is_socket_(is_socket(in)),
      out_is_socket_(is_socket(out)),
      most_at_once_(SIZE_MAX),
      parser_(wire::kMaxAgentPayload),
      buffer_(kReadBytes, '\0') {
  if (out_is_socket_) {
    // Only root may exceed net.core.wmem_max; whoever may not gets that.
    if (::setsockopt(out_, SOL_SOCKET, SO_SNDBUFFORCE, &kKernelBytes, sizeof kKernelBytes) != 0) {
      ::setsockopt(out_, SOL_SOCKET, SO_SNDBUF, &kKernelBytes, sizeof kKernelBytes);
    }
  } else {
    reopened_.reset(open_anew(out));
    if (reopened_) {
      out_ = reopened_.get();
      ::fcntl(out_, F_SETPIPE_SZ, kKernelBytes);  // more is faster; less works as well
    } else {
      most_at_once_ = PIPE_BUF;
    }
  }
  if (!loop_.watch(in_, EPOLLIN, [this](std::uint32_t) { receive(); })) {
    loop_.call_at(now(), [this] { give_up("its standard input is no pipe and no socket"); });
  }
}

HvrunLink::~HvrunLink() {
  loop_.unwatch(in_);
  loop_.unwatch(out_);
}

void HvrunLink::send_output(std::string frame) {
  if (lost_) return;
  queue_.add_output(std::move(frame));
  flush_soon();
}

void HvrunLink::give_up(const std::string& reason) {
  if (std::exchange(lost_, true)) return;
  queue_.clear();
  loop_.unwatch(in_);
  loop_.unwatch(out_);
  callbacks_.on_lost(reason);
}

void HvrunLink::receive() {
  const ssize_t got = in_is_socket_ ? ::recv(in_, buffer_.data(), buffer_.size(), MSG_DONTWAIT)
                                    : ::read(in_, buffer_.data(), buffer_.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0)
    return give_up(got == 0 ? "hvrun closed the connection"
                            : "read from hvrun: " + errno_text(errno));
  callbacks_.on_life();
  if (!parser_.feed({buffer_.data(), static_cast<std::size_t>(got)}))
    return give_up("hvrun sent what is no message");
  Frame frame;
  while (!lost_ && parser_.next(&frame)) {
    callbacks_.on_frame(frame);
    if (frame.type != static_cast<std::uint8_t>(wire::Type::kSetup)) continue;
    // It held the job's key.
    wipe(&frame.payload);
    wipe(buffer_.data(), static_cast<std::size_t>(got));
    parser_.wipe_taken();
  }
  if (!lost_ && parser_.broken()) give_up("hvrun sent what is no message");
}

// At the end of the round, so that what is sent together leaves together.
void HvrunLink::flush_soon() {
  if (waits_for_room_ || std::exchange(flush_is_due_, true)) return;
  loop_.call_at(TimePoint::min(), [this] {
    flush_is_due_ = false;
    flush();
  });
}

ssize_t HvrunLink::write_some() {
  std::array<iovec, kPieces> pieces;
  int count = queue_.pieces(pieces.data(), kPieces);
  if (most_at_once_ != SIZE_MAX) {
    count = 1;
    pieces[0].iov_len = std::min(pieces[0].iov_len, most_at_once_);
  }
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = static_cast<std::size_t>(count);
  const ssize_t wrote = out_is_socket_ ? ::sendmsg(out_, &message, MSG_DONTWAIT | MSG_NOSIGNAL)
                                       : ::writev(out_, pieces.data(), count);
  return wrote < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : wrote;
}

void HvrunLink::flush() {
  bool is_full = false;
  for (int i = 0; i < kWritesInARow && !queue_.is_empty() && !is_full; ++i) {
    // Without an open file of our own a write could wait, unless the descriptor has just been
    // called writable.
    const bool may_wait = most_at_once_ != SIZE_MAX && !(waits_for_room_ && i == 0);
    const ssize_t wrote = may_wait ? 0 : write_some();
    if (wrote < 0) return give_up("write to hvrun: " + errno_text(errno));
    is_full = wrote == 0;
    queue_.consume(static_cast<std::size_t>(wrote));
  }
  await_room(is_full);
  if (lost_) return;
  if (!is_full && !queue_.is_empty()) flush_soon();
  callbacks_.on_drained();
}

void HvrunLink::await_room(bool is_full) {
  if (std::exchange(waits_for_room_, is_full) == is_full) return;
  if (!is_full) {
    loop_.unwatch(out_);
  } else if (!loop_.watch(out_, EPOLLOUT, [this](std::uint32_t) { flush(); })) {
    give_up("its standard output is no pipe and no socket");
  }
}

}  // namespace hv::launcher
