// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/private_folder.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace hv::launcher {

Status PrivateFolder::create() {
  for (const char* place : {"/dev/shm", "/tmp"}) {
    std::string path = std::string(place) + "/hvrun-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) continue;  // which makes it 0700
    path_ = std::move(path);
    return Status::success();
  }
  return system_status("make a folder in /dev/shm or /tmp", errno);
}

void PrivateFolder::remove_tree(const std::string& path) {
  std::error_code ignored;
  if (!path.empty()) std::filesystem::remove_all(path, ignored);
}

}  // namespace hv::launcher
