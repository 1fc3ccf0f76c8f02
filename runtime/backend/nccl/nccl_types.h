// Which of NCCL's types and operations stand for the runtime's. Pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "runtime/backend/nccl/nccl_abi.h"
#include "runtime/device/element_type.h"

namespace hv::nccl {

// nullopt: NCCL does not compute with it. With 8-bit floats not every NCCL does, nor on every card.
std::optional<int> type_of(runtime::ElementType type);
// nullopt: it has none.
std::optional<int> reduction_of(runtime::Reduction reduction);

// Of a floating type but those of 8 bits: a factor as NCCL reads it, of that type.
struct Scalar {
  alignas(8) unsigned char bytes[8] = {};
};
Scalar scalar_of(runtime::ElementType type, double value);

}  // namespace hv::nccl
