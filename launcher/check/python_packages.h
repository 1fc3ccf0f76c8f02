// What hosts tell of the Python packages of the job's programs. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/check/check_input.h"

namespace hv::launcher {

// Versions of a package, by any of its names, in the environments of the programs that the host's
// ranks would run. An environment that has it by two names does not count: nobody knows which one
// is used.
std::set<std::string> versions_of(const CheckInput& input, std::size_t host,
                                  const std::vector<std::string>& names);

struct CudaOfTorch {
  std::int64_t major = 0;
  std::string version{};  // PyTorch's: "2.13.0+cu130"
};
// The newest CUDA that a PyTorch there is built for; none: not told, or for the CPU.
std::optional<CudaOfTorch> cuda_of_torch(const CheckInput& input, std::size_t host);

}  // namespace hv::launcher
