// SummaryFile: where --summary goes; opened before the job starts, so that a bad path is told then.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {

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
