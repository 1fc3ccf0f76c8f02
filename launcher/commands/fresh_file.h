// FreshFile: a file that is there whole, or as it was before.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "src/base/unique_fd.h"

namespace hv::launcher {

// Opened before there is anything to write, so that a bad path is told then: under a name of its
// own beside the one that is meant, which it gets when it is complete.
class FreshFile {
 public:
  // option: that names the path, for messages. path empty: none, and write() does nothing. Throws
  // Error(kUsage) where it cannot be made, where what is there is no plain file, and where that is
  // the one that standard output or error is written to.
  FreshFile(std::string option, std::string path);
  ~FreshFile();
  FreshFile(const FreshFile&) = delete;
  FreshFile& operator=(const FreshFile&) = delete;

  // Once. Throws Error(kStart); then what was there before stays.
  void write(const std::string& text);

 private:
  [[noreturn]] void fail(const std::string& verb, int error) const;
  void refuse_what_is_there();

  std::string option_, path_;
  std::string unfinished_;  // while it is there
  UniqueFd fd_;
};

}  // namespace hv::launcher
