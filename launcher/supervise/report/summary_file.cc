// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/report/summary_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "src/base/blocking_write.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// A file that the summary would cut off, by /dev/stderr or by its name.
bool is_same_file(int one, int other) {
  struct stat a {
  }, b{};
  return ::fstat(one, &a) == 0 && ::fstat(other, &b) == 0 && S_ISREG(a.st_mode) &&
         a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

SummaryFile::SummaryFile(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  // Not blocking: a FIFO without a reader is an error at once.
  fd_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666));
  if (!fd_) {
    throw Error(ErrorKind::kUsage, "open --summary " + printable(path_) + ": " + errno_text(errno),
                "name a file in a folder that exists and can be written");
  }
  ::fcntl(fd_.get(), F_SETFL, 0);
  for (const int stream : {1, 2}) {
    if (!is_same_file(fd_.get(), stream)) continue;
    throw Error(ErrorKind::kUsage,
                "--summary " + printable(path_) + " is the file that standard " +
                    (stream == 1 ? "output" : "error") +
                    " is written to: the summary would replace what is there",
                "name another file");
  }
}

Status SummaryFile::write(const std::string& text) {
  if (!fd_) return Status::success();
  const std::string doing = "write --summary " + printable(path_);
  // A pipe or a device has nothing to cut off.
  if (::ftruncate(fd_.get(), 0) != 0 && errno != EINVAL) return system_status(doing, errno);
  const int error = write_all(fd_.get(), text);
  return error == 0 ? Status::success() : system_status(doing, error);
}

}  // namespace hv::launcher
