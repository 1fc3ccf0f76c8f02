// All types, and tensors of random bits, for the tests of the kernels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "runtime/device/element_type.h"

namespace hv::runtime {

using Bytes = std::vector<std::byte>;

inline std::vector<ElementType> element_types() {
  std::vector<ElementType> all;
  for (int number = 0; number < kTypeNumbers; ++number)
    if (is_element_type(number)) all.push_back(static_cast<ElementType>(number));
  return all;
}

inline Bytes random_bytes(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// Random bits make any float, infinities and NaNs among them; a bool is 0 or 1.
inline Bytes random_tensor(ElementType type, std::size_t count, std::uint64_t seed) {
  Bytes bytes = random_bytes(count * element_size(type), seed);
  if (type == ElementType::kBool)
    for (std::byte& byte : bytes) byte &= std::byte{1};
  return bytes;
}

}  // namespace hv::runtime
