// SPDX-License-Identifier: Apache-2.0
#include "src/base/blocking_write.h"

#include <limits.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

namespace hv {
namespace {

// 0: try again.
int after_failed_write(int fd, int errno_value) {
  if (errno_value == EINTR) return 0;
  if (errno_value != EAGAIN && errno_value != EWOULDBLOCK) return errno_value;
  pollfd waited{fd, POLLOUT, 0};
  return ::poll(&waited, 1, -1) < 0 && errno != EINTR ? errno : 0;
}

// How many pieces are done, when so many bytes of them have been written; shortens the next one.
std::size_t pieces_done(iovec* pieces, std::size_t count, std::size_t written) {
  std::size_t done = 0;
  while (done < count && written >= pieces[done].iov_len) written -= pieces[done++].iov_len;
  if (done < count) {
    pieces[done].iov_base = static_cast<std::byte*>(pieces[done].iov_base) + written;
    pieces[done].iov_len -= written;
  }
  return done;
}

}  // namespace

int write_all(int fd, std::string_view bytes) {
  std::vector<iovec> one{{const_cast<char*>(bytes.data()), bytes.size()}};
  return write_all(fd, one);
}

int write_all(int fd, std::vector<iovec>& pieces) {
  std::size_t done = pieces_done(pieces.data(), pieces.size(), 0);
  while (done < pieces.size()) {
    const std::size_t count = std::min<std::size_t>(pieces.size() - done, IOV_MAX);
    const ssize_t written = ::writev(fd, &pieces[done], static_cast<int>(count));
    if (written < 0) {
      if (const int failure = after_failed_write(fd, errno)) return failure;
    } else {
      done += pieces_done(&pieces[done], count, static_cast<std::size_t>(written));
    }
  }
  return 0;
}

}  // namespace hv
