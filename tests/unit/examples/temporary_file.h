// A file in a folder of its own that goes with its test.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <string>

#include "tests/unit/temporary_folder.h"

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) { write(content); }

  std::string path() const { return folder_ / "file"; }
  const std::string& folder() const { return folder_.path(); }
  void write(const std::string& content) const {
    std::ofstream(path(), std::ios::binary) << content;
  }
  std::string read() const { return hv::tests::file_content(path()); }

 private:
  hv::tests::TemporaryFolder folder_;
};
