// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/fresh_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {

FreshFile::FreshFile(std::string option, std::string path)
    : option_(std::move(option)), path_(std::move(path)) {
  if (path_.empty()) return;
  if (path_ == "-")
    throw Error(ErrorKind::kUsage, option_ + " - would be mixed with what standard output has",
                "name a file, or ./- for one of that name");
  refuse_what_is_there();
  const std::string name = path_ + "." + std::to_string(::getpid()) + ".tmp";
  fd_.reset(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!fd_)
    throw Error(ErrorKind::kUsage,
                "make " + printable(name) + " for " + option_ + ": " + errno_text(errno),
                "name a file in a folder that exists and can be written");
  unfinished_ = name;
}

FreshFile::~FreshFile() {
  if (!unfinished_.empty()) ::unlink(unfinished_.c_str());
}

void FreshFile::refuse_what_is_there() {
  struct stat there {};
  if (::stat(path_.c_str(), &there) != 0) return;
  if (!S_ISREG(there.st_mode))
    throw Error(ErrorKind::kUsage,
                option_ + " " + printable(path_) + " would replace what is no plain file",
                "name a file");
  for (const int stream : {1, 2}) {
    struct stat open {};
    if (::fstat(stream, &open) != 0 || open.st_dev != there.st_dev || open.st_ino != there.st_ino)
      continue;
    throw Error(ErrorKind::kUsage,
                option_ + " " + printable(path_) + " is the file that standard " +
                    (stream == 1 ? "output" : "error") + " is written to, and would replace it",
                "name another file");
  }
  // Replace the target of a symbolic link, not the link.
  char* const real = ::realpath(path_.c_str(), nullptr);
  if (real != nullptr) path_ = real;
  ::free(real);
}

void FreshFile::write(const std::string& text) {
  if (!fd_) return;
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::write(fd_.get(), text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) fail("write", errno);
    done += static_cast<std::size_t>(wrote);
  }
  // A network file system may report a full disk only on close.
  if (::close(fd_.release()) != 0) fail("write", errno);
  if (::rename(unfinished_.c_str(), path_.c_str()) != 0) fail("put in its place", errno);
  unfinished_.clear();
}

void FreshFile::fail(const std::string& verb, int error) const {
  throw Error(ErrorKind::kStart,
              verb + " " + option_ + " " + printable(path_) + ": " + errno_text(error),
              error == ENOSPC || error == EDQUOT ? "free some space there, or name another file"
                                                 : "name another file");
}

}  // namespace hv::launcher
