// OutputDirectory: the directory of --output-dir, and the ranks' directories in it.
// SPDX-License-Identifier: Apache-2.0
//
// What hvrun makes here may be read and changed by its user only. Symbolic links, and what another
// user has put here, are refused: they may lead to a file that the other user cannot write.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <string>

#include "src/base/unique_fd.h"

namespace hv::launcher {

// A job that starts again writes to DIR/restart.N.
inline constexpr char kRestartDirectory[] = "restart.";

class OutputDirectory {
 public:
  // Makes it, and the directories above it. Throws Error(kUsage), before any rank starts, where
  // this user cannot write to it, or another user has put there what ranks would write to.
  explicit OutputDirectory(std::string path);

  const std::string& path() const { return path_; }

  struct RankDirectory {
    UniqueFd fd;              // O_PATH
    int error = 0;            // errno_value, where there is no descriptor
    const char* detail = "";  // follows the file's path in a message
  };
  // Makes it where it is not there.
  RankDirectory open_rank_directory(const std::string& path) const;

  // Why what stands here is not this user's alone: "is a symbolic link". nullptr: it is.
  const char* reason_against(const struct stat& status) const;

 private:
  void refuse_foreign_entries(const std::string& directory, const char* name) const;

  std::string path_;
  uid_t owner_ = 0;  // of files that this user makes here: a file server may change it
};

}  // namespace hv::launcher
