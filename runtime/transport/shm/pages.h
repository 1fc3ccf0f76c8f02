// Whole pages: what memory is mapped, given back and shared by. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace hv::runtime {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t up_to_page(std::size_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

}  // namespace hv::runtime
