// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/pty.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <algorithm>
#include <cerrno>

namespace hv::launcher {
namespace {

// The kernel opens the other side itself where it can (4.13): /dev/pts may be another one in a
// container.
int open_slave(int master) {
  const int slave = ::ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (slave >= 0) return slave;
  char name[64];
  if (::ptsname_r(master, name, sizeof name) != 0) return -1;
  return ::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

}  // namespace

Status open_pty(std::uint32_t columns, std::uint32_t rows, Pty* pty) {
  UniqueFd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  if (!master || ::grantpt(master.get()) != 0 || ::unlockpt(master.get()) != 0) {
    return system_status("open a terminal for a rank", errno);
  }
  UniqueFd slave(open_slave(master.get()));
  if (!slave) return system_status("open a terminal for a rank", errno);
  winsize size{};
  size.ws_col = static_cast<unsigned short>(std::min(columns, 65535u));
  size.ws_row = static_cast<unsigned short>(std::min(rows, 65535u));
  if (::ioctl(slave.get(), TIOCSWINSZ, &size) != 0)
    return system_status("set the size of a rank's terminal", errno);
  pty->master = std::move(master);
  pty->slave = std::move(slave);
  return Status::success();
}

}  // namespace hv::launcher
