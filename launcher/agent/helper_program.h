// The small programs that an agent runs: beside itself, or from memory where hvrun has sent one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {

// A folder that only this user can enter, for what programs of the job keep while they run.
class PrivateDirectory {
 public:
  PrivateDirectory() = default;
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;
  // Removes it with all that is in it.
  ~PrivateDirectory() { remove_tree(path_); }

  // In memory (/dev/shm), else in /tmp. Once.
  Status create();
  const std::string& path() const { return path_; }  // empty: there is none

  // Follows no links. Nothing for "".
  static void remove_tree(const std::string& path);

 private:
  std::string path_;
};

// It may be started. The folder may be one in which anybody can put files: a copy that srun has
// brought lies in /tmp. So only a file of whom the agent's own is, and no link.
bool belongs_to_agent(const std::string& program);

// A file without a name that holds the program.
Status keep_in_memory(const std::string& name, const std::string& bytes, UniqueFd* file);
// By which a child executes it: it opens the same number, before its descriptors close.
std::string path_in_memory(const UniqueFd& file);

}  // namespace hv::launcher
