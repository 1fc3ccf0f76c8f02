// Kernels: reduce, scale and copy on host memory, in the best form that this processor runs.
// SPDX-License-Identifier: Apache-2.0
//
// Every form gives the same bits (tested): sources are folded from the first to the last, 16-bit
// floats in float32 with one rounding at the end, integers wrap. Any thread; nothing blocks;
// pointers need no alignment.
#pragma once

#include <cstddef>

#include "runtime/device/element_type.h"

namespace hv::runtime {

// What happens to a folded value before it is stored: value * factor / divisor. Floating types
// compute in their own precision (16-bit ones in float32); integers multiply in float64 only if
// factor is not 1, and divide truncating towards zero. bool takes part in neither.
struct Finish {
  double factor = 1;
  double divisor = 1;
};

// destination may be one of the sources, but must not overlap any of them otherwise.
using ReduceKernel = void (*)(void* destination, const void* const* sources, int source_count,
                              std::size_t count, const Finish& finish);
// A reduction with two liberties, for large tensors: the result may go past the caches (the
// destination is none of the sources then), and a copy of as many bytes is carried along. Reading
// what comes next while writing what is done keeps the memory busy both ways.
struct ReduceStep {
  void* destination = nullptr;
  const void* const* sources = nullptr;
  int source_count = 0;
  std::size_t count = 0;  // elements
  Finish finish;
  bool is_streamed = false;
  void* copy_to = nullptr;  // nullptr: no copy
  const void* copy_from = nullptr;
};
using ReduceStepKernel = void (*)(const ReduceStep& step);
// destination[i] = source[i] * factor, rounded to the type; destination may be source.
using ScaleKernel = void (*)(void* destination, const void* source, std::size_t count,
                             double factor);
// The regions must not overlap.
using CopyKernel = void (*)(void* destination, const void* source, std::size_t bytes);

struct Kernels {
  const char* name;
  ReduceKernel reduce[11][6];  // [ElementType][Reduction]; kAverage folds as kSum
  ReduceStepKernel reduce_step[11][6];
  ScaleKernel scale[11];
  // Through the caches. (memcpy takes `rep movsb` for these sizes, which crawls on some processors,
  // AMD's Zen 3 for one, when destination and source lie alike within their pages.)
  CopyKernel copy;
  // Past the caches: for results that nobody reads soon.
  CopyKernel stream_copy;

  ReduceKernel reduce_for(ElementType type, Reduction reduction) const {
    return reduce[static_cast<int>(type)][static_cast<int>(reduction)];
  }
  ReduceStepKernel reduce_step_for(ElementType type, Reduction reduction) const {
    return reduce_step[static_cast<int>(type)][static_cast<int>(reduction)];
  }
};

const Kernels& portable_kernels();
// nullptr where the processor lacks AVX2 or F16C.
const Kernels* avx2_kernels();
// The best of those; the choice is made once.
const Kernels& best_kernels();

}  // namespace hv::runtime
