/* Tests of hvrun.h from C with several ranks: hvrun -np N ranks_test.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "check.h"

enum { kCount = 100003 };

static void sums_are_right(int size) {
  float* data = malloc(kCount * sizeof *data);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kCount; ++i) data[i] = (float)(hvrun_rank(NULL) + i % 7);
    CHECK(hvrun_allreduce(NULL, "w", data, data, kCount, HVRUN_FLOAT32, HVRUN_SUM) == HVRUN_OK);
    int wrong = 0;
    for (int i = 0; i < kCount; ++i)
      wrong += data[i] != (float)(size * (size - 1) / 2 + size * (i % 7));
    CHECK(wrong == 0);
  }
  free(data);
}

/* Each rank enqueues in another order and waits in another one. */
static void order_does_not_matter(int rank, int size) {
  enum { kTensors = 40 };
  static const char* const names = "tensor";
  char name[kTensors][32];
  int32_t data[kTensors][16];
  hvrun_handle handles[kTensors];
  const int64_t shape[2] = {4, 4};
  for (int i = 0; i < kTensors; ++i) {
    const int which = (i * 7 + rank * 11) % kTensors;
    snprintf(name[which], sizeof name[which], "%s.%d", names, which);
    for (int k = 0; k < 16; ++k) data[which][k] = which + rank;
    hvrun_request request = sum_of(name[which], shape, 2, data[which], data[which]);
    request.type = HVRUN_INT32;
    CHECK(hvrun_enqueue(NULL, &request, &handles[which]) == HVRUN_OK);
  }
  for (int i = 0; i < kTensors; ++i) {
    const int which = (i * 3 + rank) % kTensors;
    CHECK(hvrun_wait(NULL, handles[which], -1, NULL) == HVRUN_OK);
    CHECK(data[which][15] == size * which + size * (size - 1) / 2);
    CHECK(hvrun_release(NULL, handles[which]) == HVRUN_OK);
  }
}

static void gathering_joins_by_rank(int rank, int size) {
  const int64_t rows = rank + 1;
  int64_t* input = malloc((size_t)rows * sizeof *input);
  for (int64_t i = 0; i < rows; ++i) input[i] = rank;
  hvrun_request gather = sum_of("g", &rows, 1, input, NULL);
  gather.operation = HVRUN_ALLGATHER;
  gather.type = HVRUN_INT64;
  hvrun_handle handle;
  hvrun_result result = HVRUN_RESULT_INIT;
  CHECK(hvrun_enqueue(NULL, &gather, &handle) == HVRUN_OK);
  CHECK(hvrun_wait(NULL, handle, -1, &result) == HVRUN_OK);
  CHECK(result.ndim == 1 && result.shape[0] == size * (size + 1) / 2);
  const int64_t* all = result.data;
  for (int from = 0, at = 0; from < size; ++from) {
    for (int i = 0; i <= from; ++i) CHECK(all[at++] == from);
  }
  CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
  free(input);
}

static void everyone_has_the_roots_bytes(int rank, int size) {
  for (int root = 0; root < size; ++root) {
    double values[3] = {rank, rank, rank};
    CHECK(hvrun_broadcast(NULL, "b", values, 3, HVRUN_FLOAT64, root) == HVRUN_OK);
    CHECK(values[0] == root && values[2] == root);
  }
}

static void a_mismatch_says_who_said_what(int rank, int size) {
  if (size < 2) return;
  float data[2] = {0, 0};
  const int count = rank == size - 1 ? 2 : 1;
  CHECK(hvrun_allreduce(NULL, "m", data, data, count, HVRUN_FLOAT32, HVRUN_SUM) ==
        HVRUN_ERROR_MISMATCH);
  CHECK_SAYS("tensor 'm'");
  CHECK_SAYS("has float32 [2]");
  CHECK(hvrun_allreduce(NULL, "m", data, data, 2, HVRUN_FLOAT32, HVRUN_SUM) == HVRUN_OK);
}

/* Joining anew in the same process: another epoch of the same job. */
static void it_can_begin_again(int rank, int size) {
  for (int round = 0; round < 20; ++round) {
    float value = (float)rank;
    CHECK(hvrun_init(NULL, NULL) == HVRUN_OK);
    CHECK(hvrun_allreduce(NULL, "x", &value, &value, 1, HVRUN_FLOAT32, HVRUN_SUM) == HVRUN_OK);
    CHECK(value == (float)(size * (size - 1) / 2));
    CHECK(hvrun_shutdown(NULL) == HVRUN_OK);
  }
}

int main(void) {
  if (hvrun_init(NULL, NULL) != HVRUN_OK) {
    fprintf(stderr, "hvrun_init: %s\n", hvrun_last_error());
    return 1;
  }
  const int rank = hvrun_rank(NULL), size = hvrun_size(NULL);
  sums_are_right(size);
  order_does_not_matter(rank, size);
  gathering_joins_by_rank(rank, size);
  everyone_has_the_roots_bytes(rank, size);
  a_mismatch_says_who_said_what(rank, size);
  CHECK(hvrun_barrier(NULL) == HVRUN_OK);
  CHECK(hvrun_shutdown(NULL) == HVRUN_OK);
  it_can_begin_again(rank, size);
  if (failures == 0) printf("ranks_test: rank %d of %d: all good\n", rank, size);
  return failures == 0 ? 0 : 1;
}
