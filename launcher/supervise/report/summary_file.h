// SummaryFile: the file of --summary, opened before the job starts: a bad path is reported early.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {

class SummaryFile {
 public:
  // path: empty: no file, and write() does nothing. Throws Error(kUsage) when the file cannot be
  // opened, or is the file that standard output or error is written to. The file keeps its content
  // until write().
  explicit SummaryFile(std::string path);
  Status write(const std::string& text);

 private:
  std::string path_;
  UniqueFd fd_;
};

}  // namespace hv::launcher
