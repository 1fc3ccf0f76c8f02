// SPDX-License-Identifier: Apache-2.0
#include "src/wire/wipe.h"

#include <sodium.h>
#include <string.h>

#include <algorithm>

namespace hv {
namespace {

// More than the dynamic linker, or the kernel for a signal, saves of them.
constexpr std::size_t kStackBytes = std::size_t{16} << 10;

#if defined(__x86_64__)
#define HV_VECTOR_REGISTERS                                                                \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
      "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

void clear_registers() {
  // No code of ours has anything in those from 16 on: it is compiled for all processors.
  if (__builtin_cpu_supports("avx512f"))
    asm volatile(
        ".irp n,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
        "vpxord %%zmm\\n,%%zmm\\n,%%zmm\\n\n"
        ".endr" ::
            : HV_VECTOR_REGISTERS);
  if (__builtin_cpu_supports("avx"))
    asm volatile("vzeroall" ::: HV_VECTOR_REGISTERS);
  else
    asm volatile(
        ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        "pxor %%xmm\\n,%%xmm\\n\n"
        ".endr" ::
            : HV_VECTOR_REGISTERS);
}

#undef HV_VECTOR_REGISTERS
#else
void clear_registers() {}
#endif

// What memcpy moved stays in vector registers, which the dynamic linker saves on the stack where it
// looks up a function at its first call.
void clear_traces() {
  clear_registers();
  sodium_stackzero(kStackBytes);
}

}  // namespace

void wipe(std::string* text) {
  wipe(text->data(), text->size());
  text->clear();
}

void wipe(char* bytes, std::size_t size) {
  ::explicit_bzero(bytes, size);
  clear_traces();
}

void append_secret(std::string* text, std::string_view more) {
  if (text->capacity() - text->size() < more.size()) {
    std::string larger;
    larger.reserve(std::max(2 * text->capacity(), text->size() + more.size()));
    larger.append(*text);
    wipe(text);
    text->swap(larger);
  }
  text->append(more);
}

}  // namespace hv
