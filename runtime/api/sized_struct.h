// Structs that begin with their size: reads those of programs built with an older or newer hvrun.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "src/base/status.h"

namespace hv::runtime {

struct SizedStruct {
  const char* doing;       // begins the words of an error: "enqueue"
  const char* begin_with;  // the macro that sets the size
};

// Copies the caller's struct into *copy, of known_bytes: fields that the caller's version lacks
// become zero; one that this library does not know must be.
Status copy_sized(const SizedStruct& what, const void* given, std::size_t known_bytes, void* copy);

}  // namespace hv::runtime
