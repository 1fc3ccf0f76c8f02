/* Tests of what hvrun.h says of handles: hvrun -np N handles_test, N at least 2.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tests/c/check.h"

/* Rank 0 has its tensor; the others come only after the barrier. */
static void a_wait_ends_at_its_time_and_goes_on_later(int rank, int size) {
  float data = 1;
  hvrun_handle handle = HVRUN_NO_HANDLE, twice = 77;
  hvrun_result result = HVRUN_RESULT_INIT;
  const hvrun_request request = sum_of("late", NULL, 0, &data, &data);
  if (rank == 0) {
    CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
    CHECK(hvrun_poll(NULL, handle) == HVRUN_IN_PROGRESS);
    CHECK(hvrun_wait(NULL, handle, 0, NULL) == HVRUN_IN_PROGRESS);
    CHECK(hvrun_wait(NULL, handle, 0.02, &result) == HVRUN_IN_PROGRESS);
    CHECK(result.shape == NULL && result.data == NULL); /* not written */
    CHECK(hvrun_enqueue(NULL, &request, &twice) == HVRUN_ERROR_DUPLICATE);
    CHECK(twice == HVRUN_NO_HANDLE);
    CHECK_SAYS("'late' is in flight already");
  }
  CHECK(hvrun_barrier(NULL) == HVRUN_OK);
  if (rank != 0) CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
  CHECK(hvrun_wait(NULL, handle, -1, &result) == HVRUN_OK);
  CHECK(hvrun_wait(NULL, handle, 0, &result) == HVRUN_OK); /* twice: the same answer */
  CHECK(hvrun_poll(NULL, handle) == HVRUN_OK);
  CHECK(data == (float)size && result.data == &data);
  /* The name is free as soon as the operation is complete, although its handle is still there. */
  data = 1;
  CHECK(hvrun_enqueue(NULL, &request, &twice) == HVRUN_OK && twice != handle);
  CHECK(hvrun_wait(NULL, twice, -1, NULL) == HVRUN_OK && data == (float)size);
  CHECK(hvrun_release(NULL, handle) == HVRUN_OK && hvrun_release(NULL, twice) == HVRUN_OK);
  CHECK(hvrun_release(NULL, handle) == HVRUN_ERROR_HANDLE);
}

/* A failure is as lasting as a success. */
static void a_failure_waited_for_twice_is_the_same_failure(int rank) {
  float data[2] = {1, 1};
  const int64_t count = rank == 0 ? 1 : 2;
  hvrun_handle handle = HVRUN_NO_HANDLE;
  const hvrun_request request = sum_of("unlike", &count, 1, data, data);
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
  for (int time = 0; time < 2; ++time) {
    CHECK(hvrun_wait(NULL, handle, -1, NULL) == HVRUN_ERROR_MISMATCH);
    CHECK_SAYS("tensor 'unlike': rank");
  }
  CHECK(hvrun_poll(NULL, handle) == HVRUN_ERROR_MISMATCH);
  CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
}

/* Released while in progress, an operation goes on: here and for the others. */
static void a_handle_may_be_freed_early(int rank, int size) {
  static float data;
  hvrun_handle handle = HVRUN_NO_HANDLE;
  const hvrun_request request = sum_of("freed", NULL, 0, &data, rank == 0 ? NULL : &data);
  data = 1;
  if (rank == 0) {
    CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
    CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
    CHECK(hvrun_wait(NULL, handle, 0, NULL) == HVRUN_ERROR_HANDLE);
    CHECK(hvrun_poll(NULL, handle) == HVRUN_ERROR_HANDLE);
    CHECK_SAYS("released before");
    CHECK(hvrun_wait(NULL, HVRUN_NO_HANDLE, 0, NULL) == HVRUN_ERROR_HANDLE);
    CHECK_SAYS("handle 0 is HVRUN_NO_HANDLE: its hvrun_enqueue failed");
  }
  CHECK(hvrun_barrier(NULL) == HVRUN_OK);
  if (rank != 0) {
    CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
    CHECK(hvrun_wait(NULL, handle, -1, NULL) == HVRUN_OK && data == (float)size);
    CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
  }
  CHECK(hvrun_barrier(NULL) == HVRUN_OK); /* rank 0's input is not read any more */
}

enum { kTensors = 10000 };

static int enqueue_all(float* data, hvrun_handle* handles, int is_backwards) {
  char name[32];
  int wrong = 0;
  for (int i = 0; i < kTensors; ++i) {
    const int which = is_backwards ? kTensors - 1 - i : i;
    data[which] = (float)which;
    snprintf(name, sizeof name, "many.%d", which);
    const hvrun_request request = sum_of(name, NULL, 0, &data[which], &data[which]);
    wrong += hvrun_enqueue(NULL, &request, &handles[which]) != HVRUN_OK;
  }
  return wrong;
}

/* All at once: the last rank has none of them before it knows that the others have all, and the
 * others have seen by then that their engines took them. */
static void ten_thousand_may_be_in_flight(int rank, int size) {
  float* const data = malloc(kTensors * sizeof *data);
  hvrun_handle* const handles = malloc(kTensors * sizeof *handles);
  const int is_last = rank == size - 1;
  hvrun_counters before = HVRUN_COUNTERS_INIT, now = HVRUN_COUNTERS_INIT;
  int wrong = 0;
  CHECK(hvrun_counters_read(NULL, &before) == HVRUN_OK);
  if (!is_last) wrong = enqueue_all(data, handles, rank % 2 != 0);
  CHECK(hvrun_barrier(NULL) == HVRUN_OK);
  CHECK(hvrun_counters_read(NULL, &now) == HVRUN_OK);
  CHECK(is_last || now.operations_enqueued - before.operations_enqueued >= kTensors);
  CHECK(now.operations_completed - before.operations_completed <= 1); /* the barrier */
  for (int i = 0; i < kTensors && !is_last; ++i)
    wrong += hvrun_poll(NULL, handles[i]) != HVRUN_IN_PROGRESS;
  CHECK(hvrun_barrier(NULL) == HVRUN_OK);
  if (is_last) wrong = enqueue_all(data, handles, 1);
  for (int i = kTensors - 1; i >= 0; --i) {
    wrong += hvrun_wait(NULL, handles[i], -1, NULL) != HVRUN_OK || data[i] != (float)(i * size);
    wrong += hvrun_release(NULL, handles[i]) != HVRUN_OK;
  }
  CHECK(wrong == 0);
  free(data);
  free(handles);
}

/* Far more names than the cache has room for: it evicts, and nothing grows without bound. What is
 * kept for every name would be seen: 80,000 of them at 32 bytes are 2.4 MiB. */
static void a_hundred_thousand_names_may_come_and_go(int size) {
#ifdef __SANITIZE_THREAD__
  enum { kBatches = 20 }; /* a tenth as fast, and it does not look at the memory */
#else
  enum { kBatches = 100 };
#endif
  enum { kBatch = 1000, kSettled = 20, kBound = 2 << 20 };
  static float data[kBatch];
  static hvrun_handle handles[kBatch];
  char name[32];
  int wrong = 0;
  long settled = 0;
  hvrun_counters before = HVRUN_COUNTERS_INIT, after = HVRUN_COUNTERS_INIT;
  CHECK(hvrun_counters_read(NULL, &before) == HVRUN_OK);
  for (int batch = 0; batch < kBatches; ++batch) {
    if (batch == kSettled) settled = resident_bytes();
    for (int i = 0; i < kBatch; ++i) {
      data[i] = 1;
      snprintf(name, sizeof name, "name.%d", batch * kBatch + i);
      const hvrun_request request = sum_of(name, NULL, 0, &data[i], &data[i]);
      wrong += hvrun_enqueue(NULL, &request, &handles[i]) != HVRUN_OK;
    }
    for (int i = 0; i < kBatch; ++i) {
      wrong += hvrun_wait(NULL, handles[i], -1, NULL) != HVRUN_OK || data[i] != (float)size;
      wrong += hvrun_release(NULL, handles[i]) != HVRUN_OK;
    }
  }
  CHECK(wrong == 0);
  CHECK(resident_bytes() - settled < kBound);
  CHECK(hvrun_counters_read(NULL, &after) == HVRUN_OK);
  CHECK(after.cache_misses - before.cache_misses == (uint64_t)kBatches * kBatch);
  CHECK(after.operations_completed - before.operations_completed == (uint64_t)kBatches * kBatch);
}

static void tensors_may_be_empty_or_scalars(int size) {
  const int64_t none[2] = {0, 5};
  float value = 1;
  hvrun_handle handle;
  hvrun_result result = HVRUN_RESULT_INIT;
  const hvrun_request empty = sum_of("empty", none, 2, NULL, NULL);
  CHECK(hvrun_enqueue(NULL, &empty, &handle) == HVRUN_OK);
  CHECK(hvrun_wait(NULL, handle, -1, &result) == HVRUN_OK);
  CHECK(result.bytes == 0 && result.ndim == 2 && result.shape[0] == 0 && result.shape[1] == 5);
  CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
  const hvrun_request scalar = sum_of("scalar", NULL, 0, &value, NULL);
  CHECK(hvrun_enqueue(NULL, &scalar, &handle) == HVRUN_OK);
  CHECK(hvrun_wait(NULL, handle, -1, &result) == HVRUN_OK);
  CHECK(result.bytes == 4 && result.ndim == 0 && *(const float*)result.data == (float)size);
  CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
}

/* Input and output may lie anywhere, in place and apart, below and above a block of the ring. */
static void pointers_need_no_alignment(int rank, int size) {
  static const int64_t counts[] = {3, 1000, 100001};
  for (int k = 0; k < 3; ++k) {
    for (size_t offset = 1; offset < 8; offset += 2) {
      const int64_t count = counts[k];
      const size_t bytes = (size_t)count * sizeof(double);
      unsigned char* const memory = malloc(2 * (bytes + 8));
      unsigned char* const input = memory + offset;
      unsigned char* const output = memory + bytes + 8 + (8 - offset);
      for (int64_t i = 0; i < count; ++i) {
        const double value = (double)(i + rank);
        memcpy(input + (size_t)i * sizeof value, &value, sizeof value);
      }
      CHECK(hvrun_allreduce(NULL, "odd", input, output, count, HVRUN_FLOAT64, HVRUN_SUM) ==
            HVRUN_OK);
      CHECK(hvrun_allreduce(NULL, "odd", input, input, count, HVRUN_FLOAT64, HVRUN_SUM) ==
            HVRUN_OK);
      int wrong = memcmp(input, output, bytes) != 0;
      for (int64_t i = 0; i < count; ++i) {
        double value = 0;
        memcpy(&value, output + (size_t)i * sizeof value, sizeof value);
        wrong += value != (double)(i * size + size * (size - 1) / 2);
      }
      CHECK(wrong == 0);
      free(memory);
    }
  }
}

static void nothing_of_it_is_left_after_shutdown(void) {
  float data = 1;
  hvrun_handle handle = HVRUN_NO_HANDLE;
  const hvrun_request request = sum_of("last", NULL, 0, &data, NULL);
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
  CHECK(hvrun_wait(NULL, handle, -1, NULL) == HVRUN_OK);
  CHECK(hvrun_shutdown(NULL) == HVRUN_OK);
  CHECK(hvrun_poll(NULL, handle) == HVRUN_ERROR_SHUTDOWN);
  CHECK(hvrun_wait(NULL, handle, 0, NULL) == HVRUN_ERROR_SHUTDOWN);
  CHECK(hvrun_release(NULL, handle) == HVRUN_ERROR_SHUTDOWN);
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_ERROR_SHUTDOWN);
  CHECK(hvrun_init(NULL, NULL) == HVRUN_OK);
  CHECK(hvrun_poll(NULL, 1) == HVRUN_ERROR_HANDLE); /* an old number means nothing new */
  CHECK(hvrun_shutdown(NULL) == HVRUN_OK);
}

static void a_kept_result_outlives_the_context(void) {
  CHECK(hvrun_init(NULL, NULL) == HVRUN_OK);
  const int size = hvrun_size(NULL);
  float data[3] = {1, 2, 3};
  const int64_t count = 3;
  hvrun_handle handle = HVRUN_NO_HANDLE;
  hvrun_result result = HVRUN_RESULT_INIT;
  const hvrun_request request = sum_of("kept", &count, 1, data, NULL);
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
  CHECK(hvrun_wait(NULL, handle, -1, &result) == HVRUN_OK);
  CHECK(hvrun_keep(NULL, handle) == HVRUN_OK);
  CHECK(hvrun_keep(NULL, handle) == HVRUN_ERROR_HANDLE); /* known to hvrun_release only */
  CHECK(hvrun_poll(NULL, handle) == HVRUN_ERROR_HANDLE);
  CHECK(hvrun_shutdown(NULL) == HVRUN_OK);
  const float* const sums = result.data;
  for (int i = 0; i < 3; ++i) CHECK(sums[i] == (float)(size * (i + 1)));
  CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
  CHECK(hvrun_release(NULL, handle) == HVRUN_ERROR_SHUTDOWN);
}

/* Nor may one be kept whose result is still to come. */
static void nothing_unfinished_is_kept(int rank) {
  float data = 1;
  hvrun_handle handle = HVRUN_NO_HANDLE;
  const hvrun_request request = sum_of("too early", NULL, 0, &data, &data);
  if (rank == 0) {
    CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
    CHECK(hvrun_keep(NULL, handle) == HVRUN_ERROR_ARGUMENT);
    CHECK_SAYS("'too early' is not complete");
  }
  CHECK(hvrun_barrier(NULL) == HVRUN_OK);
  if (rank != 0) CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
  CHECK(hvrun_wait(NULL, handle, -1, NULL) == HVRUN_OK);
  CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
}

int main(void) {
  CHECK(hvrun_init(NULL, NULL) == HVRUN_OK);
  const int rank = hvrun_rank(NULL), size = hvrun_size(NULL);
  a_wait_ends_at_its_time_and_goes_on_later(rank, size);
  a_failure_waited_for_twice_is_the_same_failure(rank);
  a_handle_may_be_freed_early(rank, size);
  ten_thousand_may_be_in_flight(rank, size);
  a_hundred_thousand_names_may_come_and_go(size);
  tensors_may_be_empty_or_scalars(size);
  pointers_need_no_alignment(rank, size);
  nothing_unfinished_is_kept(rank);
  nothing_of_it_is_left_after_shutdown();
  a_kept_result_outlives_the_context();
  return failures == 0 ? 0 : 1;
}
