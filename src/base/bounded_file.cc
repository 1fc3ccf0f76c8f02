// SPDX-License-Identifier: Apache-2.0
#include "src/base/bounded_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"

namespace hv {
namespace {

bool is_open_already(const std::string& path) {
  for (const char* folder : {"/dev/fd/", "/proc/self/fd/"})
    if (path.rfind(folder, 0) == 0) return true;
  return path == "/dev/stdin";
}

std::string hint_for(int error, const std::string& hint) {
  if (error == EACCES || error == EPERM)
    return "make it readable for you (chmod u+r), and its folders enterable (chmod u+x)";
  return hint;
}

}  // namespace

std::string read_bounded_file(const std::string& path, std::size_t most_bytes,
                              const std::string& what, const std::string& hint) {
  const std::string doing = "read " + what + " " + printable(path) + ": ";
  const auto fail = [&](int error) {
    throw Error(ErrorKind::kUsage, doing + errno_text(error), hint_for(error, hint));
  };
  const bool may_wait = is_open_already(path);
  const UniqueFd fd(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | (may_wait ? 0 : O_NONBLOCK)));
  if (!fd) fail(errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) fail(errno);
  if (S_ISFIFO(info.st_mode) && !may_wait)
    throw Error(ErrorKind::kUsage, doing + "it is a named pipe, whose writer may never come",
                "name a file, or what the shell opens: <(cat " + shell_quote(path) + ")");
  std::string content;
  char buffer[65536];
  while (content.size() <= most_bytes) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(errno);
    if (got == 0) break;
    content.append(buffer, static_cast<std::size_t>(got));
  }
  return content;
}

bool is_same_file(const std::string& one, const std::string& other) {
  struct stat first {
  }, second{};
  return ::stat(one.c_str(), &first) == 0 && ::stat(other.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

}  // namespace hv
