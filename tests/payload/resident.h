// Memory that is really there, in pages as small as they come: the slowest kind to give back.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static inline void hold_memory(size_t mebibytes) {
  const size_t bytes = mebibytes << 20;
  if (bytes == 0) return;
  char* memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    perror("memory");
    exit(9);
  }
  madvise(memory, bytes, MADV_NOHUGEPAGE);
  madvise(memory, bytes, MADV_DONTFORK);  // a child that shared it would keep it
  for (size_t at = 0; at < bytes; at += 4096) memory[at] = 1;
}
