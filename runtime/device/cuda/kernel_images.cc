// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/kernel_images.h"

// The build names the files. An array of C++ with as many bytes would take seconds to compile.
asm(".section .rodata\n"
    ".balign 16\n"
    "hvrun_fatbin: .incbin \"" HV_FATBIN
    "\"\n"
    "hvrun_fatbin_end: .balign 16\n"
    "hvrun_ptx: .incbin \"" HV_PTX
    "\"\n"
    ".byte 0\n"
    ".previous\n");

extern "C" {
[[gnu::visibility("hidden")]] extern const char hvrun_fatbin[];
[[gnu::visibility("hidden")]] extern const char hvrun_fatbin_end[];
[[gnu::visibility("hidden")]] extern const char hvrun_ptx[];
}

namespace hv::cuda {

const void* fatbin_image() {
  return &hvrun_fatbin[0] != &hvrun_fatbin_end[0] ? hvrun_fatbin : nullptr;
}

const char* ptx_image() { return hvrun_ptx; }

}  // namespace hv::cuda
