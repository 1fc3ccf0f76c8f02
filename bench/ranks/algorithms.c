/* Times allreduce of float32 through the C API, at the sizes given: one JSON object with the median
 * seconds of each, from rank 0. bench/algorithms.py runs it under each algorithm in turn.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <hvrun/hvrun.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int by_value(const void* a, const void* b) {
  const double first = *(const double*)a, second = *(const double*)b;
  return (first > second) - (first < second);
}

static void check(hvrun_status status, const char* what) {
  if (status == HVRUN_OK) return;
  fprintf(stderr, "%s: %s\n", what, hvrun_last_error());
  exit(1);
}

static double timed(hvrun_context* context, float* input, float* output, int64_t count) {
  const double begun = seconds_now();
  check(hvrun_allreduce(context, "timed", input, output, count, HVRUN_FLOAT32, HVRUN_SUM),
        "allreduce");
  return seconds_now() - begun;
}

int main(int argc, char** argv) {
  hvrun_context* context = NULL;
  check(hvrun_init(NULL, &context), "init");
  const int rank = hvrun_rank(context);
  for (int i = 1; i < argc; ++i) {
    const int64_t bytes = strtoll(argv[i], NULL, 10), count = bytes / 4;
    float* const input = malloc((size_t)bytes);
    float* const output = malloc((size_t)bytes);
    for (int64_t k = 0; k < count; ++k) input[k] = (float)rank + 1;
    const int repetitions = bytes <= 65536 ? 60 : bytes <= 1 << 20 ? 12 : 3;
    double seconds[60];
    for (int k = -repetitions / 4 - 1; k < repetitions; ++k) {
      const double took = timed(context, input, output, count);
      if (k >= 0) seconds[k] = took;
    }
    qsort(seconds, (size_t)repetitions, sizeof *seconds, by_value);
    if (rank == 0)
      printf("%s\"%" PRId64 "\": %.9f%s", i == 1 ? "{" : "", bytes, seconds[repetitions / 2],
             i + 1 == argc ? "}\n" : ", ");
    free(input);
    free(output);
  }
  check(hvrun_shutdown(context), "shutdown");
  return 0;
}
