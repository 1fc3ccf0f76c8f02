/* Tests of counters and timelines by hvrun.h: hvrun -np N observation_test FOLDER.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tests/c/check.h"

enum { kRounds = 3, kTensors = 10, kFloats = 100 };

static hvrun_counters now(void) {
  hvrun_counters counters = HVRUN_COUNTERS_INIT;
  CHECK(hvrun_counters_read(NULL, &counters) == HVRUN_OK);
  return counters;
}

/* As a program built with an earlier or a later hvrun.h would ask. */
static void malformed_questions_are_refused(void) {
  hvrun_counters counters = HVRUN_COUNTERS_INIT;
  CHECK(hvrun_counters_read(NULL, NULL) == HVRUN_ERROR_ARGUMENT);
  counters.struct_size = 0;
  CHECK(hvrun_counters_read(NULL, &counters) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("HVRUN_COUNTERS_INIT");
  counters.struct_size = offsetof(hvrun_counters, steps);
  counters.steps = 77;
  CHECK(hvrun_counters_read(NULL, &counters) == HVRUN_OK);
  CHECK(counters.steps == 77 && counters.struct_size == offsetof(hvrun_counters, steps));
  CHECK(hvrun_timeline_start(NULL, NULL) == HVRUN_ERROR_ARGUMENT);
  CHECK(hvrun_timeline_start(NULL, "") == HVRUN_ERROR_ARGUMENT);
}

/* What becomes of them is told by hvrun: tests/cli. */
static void step_times_that_can_be_are_taken(void) {
  hvrun_step_times times = HVRUN_STEP_TIMES_INIT;
  CHECK(hvrun_report_steps(NULL, NULL) == HVRUN_ERROR_ARGUMENT);
  times.steps = 10;
  times.nanoseconds = 100;
  times.data_nanoseconds = 40;
  times.data_waits = 10;
  times.exchange_nanoseconds = 60;
  CHECK(hvrun_report_steps(NULL, &times) == HVRUN_OK);
  times.exchange_nanoseconds = 61;
  CHECK(hvrun_report_steps(NULL, &times) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("parts are no more than the whole");
  times.exchange_nanoseconds = UINT64_MAX; /* whose sum with the others is small again */
  CHECK(hvrun_report_steps(NULL, &times) == HVRUN_ERROR_ARGUMENT);
  times.exchange_nanoseconds = 0;
  times.nanoseconds = UINT64_MAX;
  CHECK(hvrun_report_steps(NULL, &times) == HVRUN_ERROR_ARGUMENT);
  times.nanoseconds = 100;
  times.data_waits = 0;
  CHECK(hvrun_report_steps(NULL, &times) == HVRUN_ERROR_ARGUMENT);
  times.data_waits = 10;
  times.steps = 0;
  CHECK(hvrun_report_steps(NULL, &times) == HVRUN_ERROR_ARGUMENT);
}

static void step_times_only_grow(void) {
  hvrun_step_times times = HVRUN_STEP_TIMES_INIT;
  times.steps = 20;
  times.nanoseconds = 200;
  times.data_nanoseconds = 40;
  times.data_waits = 10;
  times.exchange_nanoseconds = 60;
  CHECK(hvrun_report_steps(NULL, &times) == HVRUN_OK);
  CHECK(hvrun_report_steps(NULL, &times) == HVRUN_OK);
  times.steps = 19;
  CHECK(hvrun_report_steps(NULL, &times) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("19 steps of 200 ns follow 20 steps of 200 ns");
  times.steps = 21;
  times.exchange_nanoseconds = 59;
  CHECK(hvrun_report_steps(NULL, &times) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("a part of them has shrunk");
  times.exchange_nanoseconds = 60;
  CHECK(hvrun_report_steps(NULL, &times) == HVRUN_OK);
}

/* As a program built with an earlier or a later hvrun.h would tell them. */
static void step_times_may_have_grown(void) {
  struct {
    hvrun_step_times known;
    uint64_t unknown;
  } later = {HVRUN_STEP_TIMES_INIT, 0};
  hvrun_step_times times = HVRUN_STEP_TIMES_INIT;
  later.known.struct_size = sizeof later;
  CHECK(hvrun_report_steps(NULL, &later.known) == HVRUN_OK);
  later.unknown = 1;
  CHECK(hvrun_report_steps(NULL, &later.known) == HVRUN_ERROR_ARGUMENT);
  times.struct_size = 0;
  CHECK(hvrun_report_steps(NULL, &times) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("HVRUN_STEP_TIMES_INIT");
  times.struct_size = offsetof(hvrun_step_times, data_nanoseconds);
  times.steps = times.nanoseconds = 1;
  times.data_nanoseconds = 77; /* beyond what it says it has */
  CHECK(hvrun_report_steps(NULL, &times) == HVRUN_OK);
}

static void run_rounds(void) {
  static float data[kTensors][kFloats];
  hvrun_handle handles[kTensors];
  const int64_t count = kFloats;
  char name[32];
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kTensors; ++i) {
      snprintf(name, sizeof name, "tensor.%d", i);
      const hvrun_request request = sum_of(name, &count, 1, data[i], data[i]);
      CHECK(hvrun_enqueue(NULL, &request, &handles[i]) == HVRUN_OK);
    }
    for (int i = 0; i < kTensors; ++i) {
      CHECK(hvrun_wait(NULL, handles[i], -1, NULL) == HVRUN_OK);
      CHECK(hvrun_release(NULL, handles[i]) == HVRUN_OK);
    }
  }
}

static void what_was_done_is_counted(void) {
  const hvrun_counters before = now();
  run_rounds();
  const hvrun_counters after = now();
  const uint64_t all = kRounds * kTensors, bytes = all * kFloats * sizeof(float);
  CHECK(after.operations_enqueued - before.operations_enqueued == all);
  CHECK(after.operations_completed - before.operations_completed == all);
  CHECK(after.operations_failed == before.operations_failed);
  CHECK(after.cache_misses - before.cache_misses == kTensors);
  CHECK(after.cache_hits - before.cache_hits == all - kTensors);
  CHECK(after.input_bytes - before.input_bytes == bytes);
  CHECK(after.result_bytes - before.result_bytes == bytes);
  const uint64_t alone =
      (after.buckets - before.buckets) - (after.fused_buckets - before.fused_buckets);
  CHECK(alone + (after.fused_tensors - before.fused_tensors) == all);
  CHECK(after.decisions > before.decisions && after.steps > before.steps);
  /* Each byte of an allreduce in a host lies in shared memory once, or twice with shares. */
  const uint64_t shared = after.shared_memory_bytes - before.shared_memory_bytes;
  const int is_shared = hvrun_local_size(NULL) > 1;
  CHECK(is_shared ? shared > 0 && shared <= 2 * bytes : shared == 0);
  /* Between hosts the first rank of each carries all where the smallest has but one. */
  const uint64_t sent = after.tcp_bytes - before.tcp_bytes;
  if (hvrun_size(NULL) == hvrun_local_size(NULL)) CHECK(sent == 0);
  if (hvrun_size(NULL) > hvrun_local_size(NULL) && hvrun_local_rank(NULL) == 0) CHECK(sent > 0);
  CHECK((after.waits > before.waits) == (after.wait_nanoseconds > before.wait_nanoseconds));
}

/* Rank 1 has its tensor only after rank 0 has said that it has its own. */
static void a_late_rank_is_waited_for(int rank, int size) {
  float data = 1, token = 0;
  const hvrun_counters before = now();
  const hvrun_request late = sum_of("late", NULL, 0, &data, &data);
  hvrun_request word = sum_of("token", NULL, 0, &token, &token);
  hvrun_handle handle = HVRUN_NO_HANDLE, told = HVRUN_NO_HANDLE;
  if (size == 1) return;
  word.operation = rank == 0 ? HVRUN_SEND : HVRUN_RECEIVE;
  word.root = rank == 0 ? 1 : 0;
  if (rank != 1) CHECK(hvrun_enqueue(NULL, &late, &handle) == HVRUN_OK);
  if (rank <= 1) {
    CHECK(hvrun_enqueue(NULL, &word, &told) == HVRUN_OK);
    CHECK(hvrun_wait(NULL, told, -1, NULL) == HVRUN_OK && hvrun_release(NULL, told) == HVRUN_OK);
  }
  if (rank == 1) CHECK(hvrun_enqueue(NULL, &late, &handle) == HVRUN_OK);
  CHECK(hvrun_wait(NULL, handle, -1, NULL) == HVRUN_OK && hvrun_release(NULL, handle) == HVRUN_OK);
  const hvrun_counters after = now();
  if (rank != 0) {
    CHECK(after.straggler_nanoseconds == 0 && after.worst_rank == -1);
    return;
  }
  CHECK(after.straggler_nanoseconds > before.straggler_nanoseconds);
  CHECK(after.straggler_nanoseconds >= after.worst_rank_nanoseconds);
  CHECK(after.worst_rank_nanoseconds > 0 && after.worst_rank >= 0 && after.worst_rank < size);
}

static void a_failure_is_counted(int rank, int size) {
  float data[2] = {0, 0};
  const hvrun_counters before = now();
  if (size == 1) return;
  CHECK(hvrun_allreduce(NULL, "unlike", data, data, rank == 0 ? 1 : 2, HVRUN_FLOAT32, HVRUN_SUM) ==
        HVRUN_ERROR_MISMATCH);
  CHECK(now().operations_failed - before.operations_failed == 1);
}

/* The files themselves are read by whoever started this. */
static void a_timeline_is_written_between_start_and_stop(const char* folder, int rank) {
  char path[4096];
  snprintf(path, sizeof path, "%s/no/such/%%r", folder);
  CHECK(hvrun_timeline_start(NULL, path) == HVRUN_ERROR_SYSTEM);
  CHECK_SAYS("No such file");
  snprintf(path, sizeof path, "%s/each-%%r.json", folder);
  CHECK(hvrun_timeline_start(NULL, path) == HVRUN_OK);
  CHECK(hvrun_timeline_start(NULL, path) == HVRUN_ERROR_ARGUMENT);
  run_rounds();
  CHECK(hvrun_timeline_stop(NULL) == HVRUN_OK);
  CHECK(hvrun_timeline_stop(NULL) == HVRUN_OK);
  run_rounds(); /* in no file */
  snprintf(path, sizeof path, "%s/first.json", folder);
  CHECK(hvrun_timeline_start(NULL, path) == HVRUN_OK);
  if (rank != 0) CHECK(hvrun_timeline_start(NULL, path) == HVRUN_OK); /* writes none */
  CHECK(hvrun_barrier(NULL) == HVRUN_OK);
  CHECK(now().timeline_dropped == 0);
}

int main(int argc, char** argv) {
  hvrun_counters counters = HVRUN_COUNTERS_INIT;
  CHECK(argc == 2);
  if (argc != 2) return 1;
  CHECK(hvrun_counters_read(NULL, &counters) == HVRUN_ERROR_SHUTDOWN);
  CHECK(hvrun_timeline_start(NULL, "x") == HVRUN_ERROR_SHUTDOWN);
  CHECK(hvrun_timeline_stop(NULL) == HVRUN_ERROR_SHUTDOWN);
  hvrun_step_times times = HVRUN_STEP_TIMES_INIT;
  CHECK(hvrun_report_steps(NULL, &times) == HVRUN_ERROR_SHUTDOWN);
  CHECK(hvrun_init(NULL, NULL) == HVRUN_OK);
  const int rank = hvrun_rank(NULL), size = hvrun_size(NULL);
  malformed_questions_are_refused();
  step_times_may_have_grown();
  step_times_that_can_be_are_taken();
  step_times_only_grow();
  what_was_done_is_counted();
  a_late_rank_is_waited_for(rank, size);
  a_failure_is_counted(rank, size);
  a_timeline_is_written_between_start_and_stop(argv[1], rank);
  CHECK(hvrun_shutdown(NULL) == HVRUN_OK); /* finishes first.json */
  return failures == 0 ? 0 : 1;
}
