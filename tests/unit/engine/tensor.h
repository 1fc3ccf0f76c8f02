// An operation for tests of the engine that move no data: four floats, summed in place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "runtime/engine/operation.h"

namespace hv::runtime {

inline OperationPtr named_operation(const std::string& name) {
  static std::byte memory[16];
  auto operation = std::make_shared<Operation>();
  operation->name = name;
  operation->description.kind = CollectiveKind::kAllreduce;
  operation->description.type = ElementType::kFloat32;
  operation->description.shape = {4};
  operation->input = operation->output = memory;
  return operation;
}

}  // namespace hv::runtime
