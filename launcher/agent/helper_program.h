// Helper programs that an agent runs: from its own directory, or from memory if hvrun has sent
// them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {

// A directory that only this user can enter, for files that programs of the job keep while they
// run.
class PrivateDirectory {
 public:
  PrivateDirectory() = default;
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;
  // Removes the directory with its contents.
  ~PrivateDirectory() { remove_tree(path_); }

  // In memory (/dev/shm), else in /tmp, under a name that nobody can guess. Call once.
  Status create();
  // The same under this name, which a second agent can find. Fails where something has the name.
  Status create_named(const std::string& name);
  const std::string& path() const { return path_; }  // empty: there is none
  void remove() { remove_tree(std::exchange(path_, {})); }

  // Follows no links. Does nothing for "".
  static void remove_tree(const std::string& path);
  // Removes what an agent of this user has made by create_named().
  static void remove_named(const std::string& name);

 private:
  std::string path_;
};

// Whether the agent may start that program. Other users may write to its directory: a copy that
// srun has brought lies in /tmp. So it must be a regular file of the owner of the agent's own file.
bool belongs_to_agent(const std::string& program);

// Makes a file without a name that holds the program.
Status keep_in_memory(const std::string& name, const std::string& bytes, UniqueFd* file);
// The path by which a child executes it: a child has the same descriptor number until its
// descriptors are closed.
std::string path_in_memory(const UniqueFd& file);

}  // namespace hv::launcher
