// JobFile: the record of the job in its output directory, job.json, for `hvrun explain`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {

class JobFile {
 public:
  // directory empty: none, and write() does nothing.
  explicit JobFile(const std::string& directory);
  // In place of what was there, all at once: who reads it never meets half of it.
  Status write(const std::string& text) const;

 private:
  std::string path_;
};

// SummaryFile: where --summary goes; opened before the job starts, so that a bad path is told then.
class SummaryFile {
 public:
  // path empty: none, and write() does nothing. Throws Error(kUsage) when it cannot be opened, or
  // is the file that standard output or error is written to. What a file held before stays until
  // write().
  explicit SummaryFile(std::string path);
  Status write(const std::string& text);

 private:
  std::string path_;
  UniqueFd fd_;
};

}  // namespace hv::launcher
