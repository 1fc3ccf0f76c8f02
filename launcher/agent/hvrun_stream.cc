// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/hvrun_stream.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "src/base/clock.h"
#include "src/base/text.h"
#include "src/wire/sealed_stream.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kReadBytes = 64 << 10;
// Bytes that the kernel may hold for hvrun: each refill costs two context switches, which are
// expensive on a busy machine.
constexpr int kKernelBytes = 1 << 20;
// Bytes that are sealed at once.
constexpr std::size_t kMostUnsentToHvrun = 256 << 10;
constexpr auto kDrainTime = std::chrono::seconds(2);
constexpr int kDrainPollMilliseconds = 2;

bool is_socket(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode);
}

int open_anew(int fd) {
  return ::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
}

// Only root may exceed net.core.wmem_max; other users get that limit.
void enlarge_send_buffer(int socket) {
  if (::setsockopt(socket, SOL_SOCKET, SO_SNDBUFFORCE, &kKernelBytes, sizeof kKernelBytes) != 0)
    ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kKernelBytes, sizeof kKernelBytes);
}

// got: the result of a read. False: the stream has ended.
bool is_alive(ssize_t got, std::string* reason) {
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return true;
  *reason = got == 0 ? "hvrun closed the connection" : "read from hvrun: " + errno_text(errno);
  return false;
}

ssize_t none_if_full(ssize_t wrote) {
  return wrote < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : wrote;
}

class PlainStream : public HvrunStream {
 public:
  PlainStream(int in, int out)
      : in_(in), out_(out), in_is_socket_(is_socket(in)), out_is_socket_(is_socket(out)) {
    if (out_is_socket_) {
      enlarge_send_buffer(out_);
      return;
    }
    reopened_.reset(open_anew(out));
    if (reopened_) {
      out_ = reopened_.get();
      ::fcntl(out_, F_SETPIPE_SZ, kKernelBytes);  // more is faster; less works as well
    } else {
      most_at_once_ = PIPE_BUF;
    }
  }
  int in() const override { return in_; }
  int out() const override { return out_; }

  bool read(std::string* bytes, std::string* reason) override {
    const std::size_t before = bytes->size();
    bytes->resize(before + kReadBytes);
    char* const to = bytes->data() + before;
    const ssize_t got =
        in_is_socket_ ? ::recv(in_, to, kReadBytes, MSG_DONTWAIT) : ::read(in_, to, kReadBytes);
    const int error = errno;
    bytes->resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    errno = error;
    return is_alive(got, reason);
  }

  ssize_t write(const iovec* buffers, int count, bool is_ready) override {
    if (out_is_socket_) {
      msghdr message{};
      message.msg_iov = const_cast<iovec*>(buffers);
      message.msg_iovlen = static_cast<std::size_t>(count);
      return none_if_full(::sendmsg(out_, &message, MSG_DONTWAIT | MSG_NOSIGNAL));
    }
    if (most_at_once_ == SIZE_MAX) return none_if_full(::writev(out_, buffers, count));
    // Without an open file of our own a write could block, unless poll has just reported the
    // descriptor as writable.
    if (!is_ready) return 0;
    return none_if_full(
        ::write(out_, buffers[0].iov_base, std::min(buffers[0].iov_len, most_at_once_)));
  }

 private:
  const int in_;
  int out_;
  const bool in_is_socket_, out_is_socket_;
  UniqueFd reopened_;                    // our own open file of the pipe `out`
  std::size_t most_at_once_ = SIZE_MAX;  // bytes that a write may have without waiting
};

class SealedStream : public HvrunStream {
 public:
  SealedStream(UniqueFd socket, const ControlKeys& keys)
      : socket_(std::move(socket)),
        out_(::fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0)),
        sealer_(keys.to_hvrun),
        opener_(keys.to_agent),
        sealed_(kReadBytes, '\0') {
    enlarge_send_buffer(socket_.get());
  }
  // A socket that is closed with unread bytes drops what it has not sent yet: so wait until the
  // last message has arrived.
  ~SealedStream() override {
    ::shutdown(socket_.get(), SHUT_WR);
    const TimePoint deadline = now() + kDrainTime;
    int unsent = 0;
    while (::ioctl(socket_.get(), SIOCOUTQ, &unsent) == 0 && unsent > 0 && now() < deadline)
      ::poll(nullptr, 0, kDrainPollMilliseconds);
  }
  int in() const override { return socket_.get(); }
  int out() const override { return out_.get(); }

  bool read(std::string* bytes, std::string* reason) override {
    const ssize_t got = ::recv(socket_.get(), sealed_.data(), sealed_.size(), MSG_DONTWAIT);
    if (!is_alive(got, reason)) return false;
    if (got <= 0 || opener_.open({sealed_.data(), static_cast<std::size_t>(got)}, bytes))
      return true;
    *reason = "what came from hvrun had been changed on its way";
    return false;
  }

  ssize_t write(const iovec* buffers, int count, bool) override {
    if (!send_unsent()) return -1;
    if (has_unsent()) return 0;
    std::string bytes;
    for (int i = 0; i < count && bytes.size() < kMostUnsentToHvrun; ++i)
      bytes.append(static_cast<const char*>(buffers[i].iov_base),
                   std::min(buffers[i].iov_len, kMostUnsentToHvrun - bytes.size()));
    if (bytes.empty()) return 0;
    sealer_.seal(bytes, &unsent_);
    const auto taken = static_cast<ssize_t>(bytes.size());
    return send_unsent() ? taken : -1;
  }
  bool has_unsent() const override { return sent_ < unsent_.size(); }

 private:
  // False (errno): the stream is broken.
  bool send_unsent() {
    while (has_unsent()) {
      const ssize_t sent = none_if_full(::send(
          out_.get(), unsent_.data() + sent_, unsent_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL));
      if (sent < 0) return false;
      if (sent == 0) return true;
      sent_ += static_cast<std::size_t>(sent);
    }
    unsent_.clear();
    sent_ = 0;
    return true;
  }

  const UniqueFd socket_, out_;  // the same open file: the loop watches a descriptor only once
  Sealer sealer_;
  Opener opener_;
  std::string sealed_;  // buffer for received bytes
  std::string unsent_;  // sealed; sent_ bytes of it have gone
  std::size_t sent_ = 0;
};

}  // namespace

std::unique_ptr<HvrunStream> plain_stream(int in, int out) {
  return std::make_unique<PlainStream>(in, out);
}

std::unique_ptr<HvrunStream> sealed_stream(UniqueFd socket, const ControlKeys& keys) {
  return std::make_unique<SealedStream>(std::move(socket), keys);
}

}  // namespace hv::launcher
