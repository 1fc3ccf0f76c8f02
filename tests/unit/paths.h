// Where the tests' stand-ins and the sources lie. Only paths.cc knows absolute paths: the objects
// of all other sources are the same in every clone, so that ccache serves them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace hv::tests {

// The path of a file in the build's lib/, such as "cuda/libcuda.so.1".
std::string test_library(const std::string& name);

// The path of a file of the source tree.
std::string source_file(const std::string& name);

}  // namespace hv::tests
