// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/finish.h"

#include <bit>

namespace hv::runtime {

// Dividing by a power of two is multiplying by its inverse, bit for bit, and cheaper; 16-bit and
// 8-bit floats are multiplied in float32, where the inverse's error is far below their rounding.
Finish finish_of(const CollectiveRequest& request) {
  Finish finish{request.postscale, static_cast<double>(request.divisor)};
  const ElementType type = wire_type(request.type, request.compression);
  const bool is_power = std::has_single_bit(static_cast<std::uint64_t>(request.divisor));
  if (is_narrow_float(type) || (is_floating(type) && is_power))
    return {finish.factor / finish.divisor, 1};
  return finish;
}

}  // namespace hv::runtime
