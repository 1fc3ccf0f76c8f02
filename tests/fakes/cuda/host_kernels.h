// Kernels as the stand-in runs them: on the host, by name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hv::fake {

struct Grid {
  unsigned blocks = 0;   // of the x extent; no kernel here has others
  unsigned threads = 0;  // of a block
};

struct HostKernel {
  std::string name;
  std::vector<std::size_t> argument_bytes;  // a launch copies them
  // A CUresult: what the stream's failure becomes.
  int (*run)(const Grid& grid, void* const* arguments) = nullptr;
};

// nullptr: no module has a kernel of that name.
const HostKernel* find_host_kernel(const std::string& name);

}  // namespace hv::fake
