// Which forms of the kernels this processor can run, the best first.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace hv::runtime {

#if defined(__x86_64__)
namespace {

// Not __builtin_cpu_supports: clang knows no such feature there.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

// Of AMD's processors, as Linux counts; 0: another maker's.
unsigned amd_family() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0, &a, &b, &c, &d) == 0) return 0;
  if (b != signature_AMD_ebx || c != signature_AMD_ecx || d != signature_AMD_edx) return 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return 0;
  const unsigned base = a >> 8 & 0xf, extended = a >> 20 & 0xff;
  return base == 0xf ? base + extended : base;
}

}  // namespace

bool has_slow_string_copies() {
  constexpr unsigned kZen3And4 = 0x19;
  static const bool are_slow = amd_family() == kZen3And4;
  return are_slow;
}

// __builtin_cpu_supports asks the operating system too: whether it keeps the wide registers.
const Kernels* avx2_kernels() {
  static const bool usable = __builtin_cpu_supports("avx2") && has_f16c();
  return usable ? avx2_table() : nullptr;
}

const Kernels* avx512_kernels() {
  static const bool usable =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return usable ? avx512_table() : nullptr;
}

const Kernels* neon_kernels() { return nullptr; }
#else
bool has_slow_string_copies() { return false; }
const Kernels* avx2_kernels() { return nullptr; }
const Kernels* avx512_kernels() { return nullptr; }
const Kernels* neon_kernels() { return neon_table(); }
#endif

const std::vector<const Kernels*>& usable_kernels() {
  static const std::vector<const Kernels*> list = [] {
    std::vector<const Kernels*> usable;
    for (const Kernels* kernels : {avx512_kernels(), avx2_kernels(), neon_kernels()})
      if (kernels != nullptr) usable.push_back(kernels);
    usable.push_back(&portable_kernels());
    return usable;
  }();
  return list;
}

const Kernels& best_kernels() { return *usable_kernels().front(); }

const Kernels* find_kernels(const std::string& name) {
  for (const Kernels* kernels : usable_kernels())
    if (name == kernels->name) return kernels;
  return nullptr;
}

}  // namespace hv::runtime
