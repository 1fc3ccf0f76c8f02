// A file in the temporary directory that goes with its test.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    std::string pattern = (std::filesystem::temp_directory_path() / "hvrun-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
    folder_ = pattern;
    write(content);
  }
  ~TemporaryFile() {
    std::error_code ignored;  // a destructor has nobody to tell
    std::filesystem::remove_all(folder_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  std::string path() const { return folder_ + "/file"; }
  std::string folder() const { return folder_; }
  void write(const std::string& content) const {
    std::ofstream(path(), std::ios::binary) << content;
  }
  std::string read() const {
    std::ifstream stream(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

 private:
  std::string folder_;
};
