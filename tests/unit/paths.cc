// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/paths.h"

namespace hv::tests {

std::string test_library(const std::string& name) {
  return std::string(HVRUN_TEST_LIBRARIES) + "/" + name;
}

std::string source_file(const std::string& name) {
  return std::string(HVRUN_SOURCE_DIR) + "/" + name;
}

}  // namespace hv::tests
