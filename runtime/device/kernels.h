// Kernels: reduce, scale and copy on host memory, in the best form that this processor runs.
// SPDX-License-Identifier: Apache-2.0
//
// Every form gives the same bits (tested): sources are folded from the first to the last, 16-bit
// and 8-bit floats in float32 with one rounding at the end, integers wrap. Any thread; nothing
// blocks; pointers need no alignment.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/device/element_type.h"

namespace hv::runtime {

// What happens to a folded value before it is stored: value * factor / divisor. Floating types
// compute in their own precision (16-bit and 8-bit ones in float32); integers multiply in float64
// only if factor is not 1, and divide truncating towards zero. bool takes part in neither.
struct Finish {
  double factor = 1;
  double divisor = 1;
};

// destination may be one of the sources, but must not overlap any of them otherwise.
using ReduceKernel = void (*)(void* destination, const void* const* sources, int source_count,
                              std::size_t count, const Finish& finish);
// A reduction whose result may go past the caches, where it goes to none of the sources, or to
// several places at once, which may be sources.
struct ReduceStep {
  void* destination = nullptr;
  void* const* copies = nullptr;  // where the result goes, too
  int copy_count = 0;
  const void* const* sources = nullptr;
  int source_count = 0;
  std::size_t count = 0;  // elements
  Finish finish;
  bool is_streamed = false;
};
using ReduceStepKernel = void (*)(const ReduceStep& step);
// destination[i] = source[i] * factor, rounded to the type; destination may be source.
using ScaleKernel = void (*)(void* destination, const void* source, std::size_t count,
                             double factor);
// Sums of products of two vectors' elements, as they are added up: in float64, element i to the sum
// i modulo kDotLanes, so that every processor adds in the same order.
constexpr std::size_t kDotLanes = 8;
struct DotSums {
  double ab[kDotLanes] = {};
  double aa[kDotLanes] = {};
  double bb[kDotLanes] = {};
};
// Adds what `count` more elements of a and b give. All calls for two vectors but the last: a
// multiple of kDotLanes.
using DotKernel = void (*)(const void* a, const void* b, std::size_t count, DotSums* sums);
// destination[i] = a[i] * a_factor + b[i] * b_factor, computed in float64 and rounded to the type
// once; destination may be a or b.
using BlendKernel = void (*)(void* destination, const void* a, const void* b, std::size_t count,
                             double a_factor, double b_factor);
// destination[i] = source[i] from a wire type, as wide as the tensor's.
using UnpackKernel = void (*)(void* destination, const void* source, std::size_t count);
// The regions must not overlap.
using CopyKernel = void (*)(void* destination, const void* source, std::size_t bytes);

struct Kernels {
  const char* name;
  ReduceKernel reduce[kTypeNumbers]
                     [7];  // [ElementType][Reduction]; kAverage folds as kSum, kAdasum not
  ReduceStepKernel reduce_step[kTypeNumbers][7];
  ScaleKernel scale[kTypeNumbers];
  DotKernel dot[kTypeNumbers];  // of floating types, as the next
  BlendKernel blend[kTypeNumbers];
  // [ElementType][Compression], of kFloat32 and kFloat64: to the wire type, scaled before it is
  // rounded (through float32); and back.
  ScaleKernel pack[kTypeNumbers][3];
  UnpackKernel unpack[kTypeNumbers][3];
  // Through the caches: vector_copy where has_slow_string_copies(), else memcpy.
  CopyKernel copy;
  CopyKernel vector_copy;  // nullptr: none
  // Past the caches: for results that nobody reads soon.
  CopyKernel stream_copy;

  ReduceKernel reduce_for(ElementType type, Reduction reduction) const {
    return reduce[static_cast<int>(type)][static_cast<int>(reduction)];
  }
  ReduceStepKernel reduce_step_for(ElementType type, Reduction reduction) const {
    return reduce_step[static_cast<int>(type)][static_cast<int>(reduction)];
  }
};

// One for each set of instructions; nullptr where this build lacks it. Called only where processor
// and operating system have it: these files use its instructions anywhere, here too.
const Kernels* avx2_table();
const Kernels* avx512_table();
const Kernels* neon_table();

// The same, nullptr where the processor or the operating system lacks it, too.
const Kernels& portable_kernels();
const Kernels* avx2_kernels();    // with F16C
const Kernels* avx512_kernels();  // F, BW, DQ and VL
const Kernels* neon_kernels();

// memcpy takes the string instruction (rep movsb) for what goes through slots. That takes lines for
// itself without reading them: where a peer has just read them, it is up to three times as fast as
// vectors (Zen 5; most of all between two cores without a common cache). On AMD's Zen 3 and 4 it
// crawls when destination and source lie alike within their pages (glibc's bug 30994).
bool has_slow_string_copies();

// Those that work here, the best first; the portable ones are always there.
const std::vector<const Kernels*>& usable_kernels();
const Kernels& best_kernels();
// One of those by its name; nullptr: unknown, or not usable here.
const Kernels* find_kernels(const std::string& name);

}  // namespace hv::runtime
