// FreshFile: replaces a file with complete contents, or leaves it unchanged.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "src/base/unique_fd.h"

namespace hv::launcher {

// The constructor opens a temporary file in the same directory, so that a bad path is reported
// early. write() renames it.
class FreshFile {
 public:
  // option: the option that names the path, for messages. path empty: write() does nothing. Throws
  // Error(kUsage) if the file cannot be created, or if path is an existing file that is not regular
  // or that standard output or error is written to.
  FreshFile(std::string option, std::string path);
  ~FreshFile();
  FreshFile(const FreshFile&) = delete;
  FreshFile& operator=(const FreshFile&) = delete;

  // Call it once. Throws Error(kStart); the old file then stays.
  void write(const std::string& text);

 private:
  [[noreturn]] void fail(const std::string& verb, int error) const;
  void refuse_what_is_there();

  std::string option_, path_;
  std::string unfinished_;  // the temporary file; empty: none exists
  UniqueFd fd_;
};

}  // namespace hv::launcher
