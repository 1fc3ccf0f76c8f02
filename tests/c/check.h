/* CHECK for tests in C: says what failed where, and counts. SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <hvrun/hvrun.h>

static int failures = 0;

#define CHECK(condition)                                                                        \
  do {                                                                                          \
    if (!(condition)) {                                                                         \
      ++failures;                                                                               \
      fprintf(stderr, "%s:%d: not true: %s (last error: %s)\n", __FILE__, __LINE__, #condition, \
              hvrun_last_error());                                                              \
      fprintf(stderr, "  on rank %d\n", hvrun_rank(NULL)); /* may set the last error */         \
    }                                                                                           \
  } while (0)

#define CHECK_SAYS(part) CHECK(strstr(hvrun_last_error(), part) != NULL)

/* How a sanitizer, where there is one, goes on in this program; it takes no notice of what is not
 * its own. */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZER_OPTIONS(words) OPTIONS_BY(__asan_default_options, words)
#elif defined(__SANITIZE_THREAD__)
#define SANITIZER_OPTIONS(words) OPTIONS_BY(__tsan_default_options, words)
#else
#define SANITIZER_OPTIONS(words)
#endif
#define OPTIONS_BY(function, words)                                  \
  __attribute__((visibility("default"))) const char* function(void); \
  const char* function(void) { return words; }

/* What of this process lies in memory; 0 with a sanitizer, which keeps what was freed a while. */
static inline long resident_bytes(void) {
  long kilobytes = 0;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  /* Exact; statm is behind by so much a core. */
  FILE* const file = fopen("/proc/self/smaps_rollup", "r");
  CHECK(file != NULL && fscanf(file, "%*[^\n] Rss: %ld", &kilobytes) == 1);
  if (file != NULL) fclose(file);
#endif
  return kilobytes * 1024;
}

static inline hvrun_request sum_of(const char* name, const int64_t* shape, int32_t ndim,
                                   const void* input, void* output) {
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = HVRUN_ALLREDUCE;
  request.type = HVRUN_FLOAT32;
  request.name = name;
  request.ndim = ndim;
  request.shape = shape;
  request.input = input;
  request.output = output;
  return request;
}
