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

// The same regular file, which write() would truncate.
bool is_same_file(int first_fd, int second_fd) {
  struct stat first {
  }, second{};
  return ::fstat(first_fd, &first) == 0 && ::fstat(second_fd, &second) == 0 &&
         S_ISREG(first.st_mode) && first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

}  // namespace

SummaryFile::SummaryFile(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  // O_NONBLOCK: a FIFO without a reader is an error at once.
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
  // A pipe or a device cannot be truncated.
  if (::ftruncate(fd_.get(), 0) != 0 && errno != EINVAL) return system_status(doing, errno);
  const int error = write_all(fd_.get(), text);
  return error == 0 ? Status::success() : system_status(doing, error);
}

}  // namespace hv::launcher
