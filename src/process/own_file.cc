// SPDX-License-Identifier: Apache-2.0
#include "src/process/own_file.h"

#include <unistd.h>

#include <climits>

namespace hv {

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
