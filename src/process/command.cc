// Finding programs.
// SPDX-License-Identifier: Apache-2.0
#include "src/process/command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "src/base/text.h"

namespace hv {
namespace {

// 0, or the errno that executing it would meet.
int why_not_executable(const std::string& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return errno;
  if (S_ISDIR(info.st_mode)) return EISDIR;
  if (::access(file.c_str(), X_OK) != 0) return errno;
  return 0;
}

}  // namespace

std::string find_program(const std::string& name, const std::string& path,
                         const std::string& directory, std::string* reason) {
  const auto absolute = [&](const std::string& file) {
    return file.empty() || file[0] == '/' || directory.empty() ? file : directory + "/" + file;
  };
  if (name.find('/') != std::string::npos) {
    const std::string file = absolute(name);
    const int error = why_not_executable(file);
    if (error == 0) return file;
    *reason = errno_text(error);
    errno = error;
    return {};
  }
  int error = ENOENT;
  for (const std::string& folder : split(path, ':')) {
    const std::string file = absolute((folder.empty() ? "." : folder) + "/" + name);
    const int why = why_not_executable(file);
    if (why == 0) return file;
    if (why != ENOENT && why != ENOTDIR && why != EISDIR) error = why;
  }
  *reason =
      error == ENOENT ? "not found in PATH (" + printable(path, 300) + ")" : errno_text(error);
  errno = error;  // for spawn_child, which reports numbers
  return {};
}

std::string own_file() {
  char path[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  return {path, size > 0 ? static_cast<std::size_t>(size) : 0};
}

std::string own_folder() {
  const std::string file = own_file();
  return file.empty() ? "." : file.substr(0, file.rfind('/'));
}

}  // namespace hv
