/* Tests of hvrun_alloc, hvrun_free and hvrun_copy: hvrun -np N memory_test.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/c/check.h"

SANITIZER_OPTIONS("allocator_may_return_null=1") /* as malloc does where there is not so much */

enum { COUNT = 1 << 20 }; /* 4 MiB: carried out in place */

static float* floats(size_t count) {
  void* memory = NULL;
  CHECK(hvrun_alloc(NULL, count * sizeof(float), &memory) == HVRUN_OK && memory != NULL);
  CHECK((uintptr_t)memory % 4096 == 0);
  return memory;
}

static void check_sum(const char* name, float* input, float* output, int rank, int size) {
  const int64_t shape[] = {COUNT};
  hvrun_handle handle = HVRUN_NO_HANDLE;
  for (int i = 0; i < COUNT; ++i) input[i] = (float)(rank + i % 3);
  const hvrun_request request = sum_of(name, shape, 1, input, output);
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
  CHECK(hvrun_wait(NULL, handle, -1, NULL) == HVRUN_OK);
  CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
  const int ranks = size * (size - 1) / 2;
  int wrong = 0;
  for (int i = 0; i < COUNT; ++i) wrong += output[i] != (float)(ranks + size * (i % 3));
  CHECK(wrong == 0);
}

static void tensors_may_lie_there_on_all_ranks_or_on_some(int rank, int size) {
  float* shared = floats(COUNT);
  float* result = floats(COUNT);
  float* own = malloc(COUNT * sizeof(float));
  check_sum("in place", shared, shared, rank, size);
  check_sum("beside", shared, result, rank, size);
  check_sum("elsewhere", own, own, rank, size);
  check_sum("on some", rank == 0 ? own : shared, rank == 0 ? own : shared, rank, size);
  check_sum("result elsewhere", shared, own, rank, size);
  free(own);
  CHECK(hvrun_free(shared) == HVRUN_OK);
  CHECK(hvrun_free(result) == HVRUN_OK);
}

static void what_is_freed_can_be_had_again(void) {
  for (int i = 0; i < 1000; ++i) {
    float* piece = floats(1 << 20);
    piece[0] = piece[(1 << 20) - 1] = 1;
    CHECK(hvrun_free(piece) == HVRUN_OK);
  }
  void* none = NULL;
  CHECK(hvrun_alloc(NULL, 0, &none) == HVRUN_OK && none != NULL);
  CHECK(hvrun_free(none) == HVRUN_OK);
}

/* Of all sizes up to some cache lines, and of sizes round the one from which on copies go past the
 * caches, at any alignment. */
static void a_copy_is_that(void) {
  enum { FEW = 300, STREAMED = 256 << 10, ROOM = STREAMED + 4096 };
  char* to = (char*)floats(ROOM / sizeof(float));
  char* from = malloc(ROOM);
  for (int i = 0; i < ROOM; ++i) from[i] = (char)(i * 7 + i / 251);
  for (int n = 0; n < 2 * FEW; ++n) {
    const size_t bytes = (size_t)(n < FEW ? n : STREAMED - FEW / 2 + n);
    const int at = 1 + n % 67, of = n % 71;
    memset(to, 'x', ROOM);
    CHECK(hvrun_copy(to + at, from + of, bytes) == HVRUN_OK);
    CHECK(memcmp(to + at, from + of, bytes) == 0);
    CHECK(to[at - 1] == 'x' && to[(size_t)at + bytes] == 'x');
  }
  CHECK(hvrun_copy(NULL, NULL, 0) == HVRUN_OK);
  CHECK(hvrun_copy(NULL, from, 1) == HVRUN_ERROR_ARGUMENT);
  CHECK(hvrun_copy(to, NULL, 1) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("to or from is NULL");
  free(from);
  CHECK(hvrun_free(to) == HVRUN_OK);
}

static void misuse_is_told(void) {
  int local = 0;
  float* piece = floats(1000);
  CHECK(hvrun_alloc(NULL, 8, NULL) == HVRUN_ERROR_ARGUMENT);
  CHECK(hvrun_free(&local) == HVRUN_ERROR_ARGUMENT);
  CHECK(hvrun_free(piece + 1) == HVRUN_ERROR_ARGUMENT);
  CHECK(hvrun_free(piece) == HVRUN_OK);
  CHECK(hvrun_free(piece) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("not from hvrun_alloc, or was freed");
  CHECK(hvrun_free(NULL) == HVRUN_OK);
  void* memory = &local;
  CHECK(hvrun_alloc(NULL, SIZE_MAX / 2, &memory) == HVRUN_ERROR_MEMORY && memory == NULL);
}

/* A child sees what its parent has, and cannot give it back. */
static void a_forked_child_may_look(void) {
  float* piece = floats(100);
  piece[99] = 7;
  const pid_t child = fork();
  if (child == 0) {
    const int sees = piece[99] == 7;
    _exit(sees && hvrun_free(piece) == HVRUN_OK ? 0 : 1);
  }
  int result = -1;
  CHECK(waitpid(child, &result, 0) == child && result == 0);
  CHECK(piece[99] == 7);
  CHECK(hvrun_free(piece) == HVRUN_OK);
}

int main(void) {
  void* early = NULL;
  CHECK(hvrun_alloc(NULL, 8, &early) == HVRUN_ERROR_SHUTDOWN);
  if (hvrun_init(NULL, NULL) != HVRUN_OK) {
    fprintf(stderr, "hvrun_init: %s\n", hvrun_last_error());
    return 1;
  }
  const int rank = hvrun_rank(NULL), size = hvrun_size(NULL);
  tensors_may_lie_there_on_all_ranks_or_on_some(rank, size);
  what_is_freed_can_be_had_again();
  a_copy_is_that();
  misuse_is_told();
  a_forked_child_may_look();
  float* kept = floats(COUNT);
  kept[COUNT - 1] = 5;
  CHECK(hvrun_barrier(NULL) == HVRUN_OK);
  CHECK(hvrun_shutdown(NULL) == HVRUN_OK);
  /* It stays, and is ordinary memory for the next job of this process. */
  CHECK(kept[COUNT - 1] == 5);
  CHECK(hvrun_init(NULL, NULL) == HVRUN_OK);
  check_sum("of before", kept, kept, rank, size);
  CHECK(hvrun_barrier(NULL) == HVRUN_OK);
  CHECK(hvrun_shutdown(NULL) == HVRUN_OK);
  CHECK(hvrun_free(kept) == HVRUN_OK);
  return failures == 0 ? 0 : 1;
}
