// A folder of a test's own under /tmp, removed with all that is in it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace hv::tests {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    char name[] = "/tmp/hvrun-unit-XXXXXX";
    if (::mkdtemp(name) == nullptr) throw std::runtime_error("mkdtemp /tmp/hvrun-unit-XXXXXX");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;  // a destructor has nobody to tell
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  // A folder in it, with all above.
  std::string folder(const std::string& name) const {
    std::filesystem::create_directories(path_ + "/" + name);
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

// Whole content; "" when it cannot be read, as a file of /proc whose process has just ended.
inline std::string file_content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace hv::tests
