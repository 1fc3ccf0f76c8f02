// A folder that only this user can enter, for what programs of the job keep while they run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "src/base/status.h"

namespace hv::launcher {

class PrivateFolder {
 public:
  PrivateFolder() = default;
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  // Removes it with all that is in it.
  ~PrivateFolder() { remove_tree(path_); }

  // In memory (/dev/shm), else in /tmp. Once.
  Status create();
  const std::string& path() const { return path_; }  // empty: there is none

  // Follows no links. Nothing for "".
  static void remove_tree(const std::string& path);

 private:
  std::string path_;
};

}  // namespace hv::launcher
