// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/summary_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {

SummaryFile::SummaryFile(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  // Not blocking: a FIFO without a reader is an error at once.
  fd_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666));
  if (!fd_) {
    throw Error(ErrorKind::kUsage, "open --summary " + printable(path_) + ": " + errno_text(errno),
                "name a file in a folder that exists and can be written");
  }
  ::fcntl(fd_.get(), F_SETFL, 0);
}

Status SummaryFile::write(const std::string& text) {
  if (!fd_) return Status::success();
  const std::string doing = "write --summary " + printable(path_);
  // A pipe or a device has nothing to cut off.
  if (::ftruncate(fd_.get(), 0) != 0 && errno != EINVAL) return system_status(doing, errno);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t got = ::write(fd_.get(), text.data() + done, text.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_status(doing, errno);
    done += static_cast<std::size_t>(got);
  }
  return Status::success();
}

}  // namespace hv::launcher
