/* A group of tensors that travels in several pieces, whose borders lie within tensors, within
 * others and beside empty ones. SPDX-License-Identifier: Apache-2.0
 *
 * Each rank sums whole numbers, so that the result is exact however it is scaled or compressed; odd
 * ranks in place. Says "summed", or what is wrong. */
#include <stdio.h>
#include <stdlib.h>

#include "hvrun/hvrun.h"

enum { kTensors = 8 };

static const int64_t kCounts[kTensors] = {0, 300000, 1, 0, 700001, 3, 3000000, 0};

typedef struct way {
  const char* what;
  hvrun_compression compression;
  double prescale, postscale;
} way;

static const way kWays[] = {{"as it is", HVRUN_COMPRESSION_NONE, 0, 0},
                            {"scaled", HVRUN_COMPRESSION_NONE, 0.5, 4},
                            {"compressed", HVRUN_COMPRESSION_FP16, 0, 2}};

static float input_of(int tensor, int64_t i, int rank) {
  return (float)((i + 37 * tensor) % 251 + rank);
}

static int fail(const char* doing) {
  printf("%s: %s\n", doing, hvrun_last_error());
  return 1;
}

static int sum_is_right(const float* result, int tensor, const way* how) {
  const int ranks = hvrun_size(NULL);
  const float scale = (float)((how->prescale != 0 ? how->prescale : 1) *
                              (how->postscale != 0 ? how->postscale : 1));
  for (int64_t i = 0; i < kCounts[tensor]; ++i) {
    float sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += input_of(tensor, i, rank);
    if (result[i] == sum * scale) continue;
    printf("%s, tensor %d, element %lld: %g instead of %g\n", how->what, tensor, (long long)i,
           result[i], sum * scale);
    return 0;
  }
  return 1;
}

static int sum_all(const way* how, float** inputs, float** outputs) {
  hvrun_handle handles[kTensors];
  char names[kTensors][8];
  for (int t = 0; t < kTensors; ++t) {
    snprintf(names[t], sizeof names[t], "t%d", t);
    for (int64_t i = 0; i < kCounts[t]; ++i) inputs[t][i] = input_of(t, i, hvrun_rank(NULL));
    hvrun_request request = HVRUN_REQUEST_INIT;
    request.operation = HVRUN_ALLREDUCE;
    request.type = HVRUN_FLOAT32;
    request.name = names[t];
    request.ndim = 1;
    request.shape = &kCounts[t];
    request.input = inputs[t];
    request.output = outputs[t];
    request.compression = how->compression;
    request.prescale = how->prescale;
    request.postscale = how->postscale;
    request.group = 1;
    request.group_size = kTensors;
    if (hvrun_enqueue(NULL, &request, &handles[t]) != HVRUN_OK) return fail("enqueue");
  }
  for (int t = 0; t < kTensors; ++t) {
    if (hvrun_wait(NULL, handles[t], -1, NULL) != HVRUN_OK) return fail(names[t]);
    hvrun_release(NULL, handles[t]);
    if (!sum_is_right(outputs[t], t, how)) return 1;
  }
  return 0;
}

int main(void) {
  float *inputs[kTensors], *outputs[kTensors];
  if (hvrun_init(NULL, NULL) != HVRUN_OK) return fail("init");
  for (int t = 0; t < kTensors; ++t) {
    inputs[t] = calloc((size_t)kCounts[t] + 1, sizeof **inputs);
    outputs[t] = hvrun_rank(NULL) % 2 ? inputs[t] : calloc((size_t)kCounts[t] + 1, sizeof **inputs);
    if (inputs[t] == NULL || outputs[t] == NULL) return 1;
  }
  for (size_t i = 0; i < sizeof kWays / sizeof *kWays; ++i)
    if (sum_all(&kWays[i], inputs, outputs) != 0) return 1;
  for (int t = 0; t < kTensors; ++t) {
    if (outputs[t] != inputs[t]) free(outputs[t]);
    free(inputs[t]);
  }
  printf("summed\n");
  return hvrun_shutdown(NULL) == HVRUN_OK ? 0 : fail("shutdown");
}
