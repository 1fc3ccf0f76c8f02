// JobFile: the record of the job in its output directory, job.json, for `hvrun explain`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "src/base/status.h"

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

}  // namespace hv::launcher
