/* Process sets from C, with four ranks or more: hvrun -np 4 process_sets_test.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "tests/c/check.h"

static int is_even_member(int rank) { return rank % 2 == 0; }

/* Of this rank's number, summed over the set's members. */
static hvrun_status sum_in(uint32_t set, const char* name, int64_t* sum) {
  hvrun_request request = sum_of(name, NULL, 0, sum, sum);
  request.type = HVRUN_INT64;
  request.process_set = set;
  hvrun_handle handle;
  hvrun_status status = hvrun_enqueue(NULL, &request, &handle);
  if (status != HVRUN_OK) return status;
  status = hvrun_wait(NULL, handle, -1, NULL);
  hvrun_release(NULL, handle);
  return status;
}

static void listed_sets_are(const uint32_t* expected, int32_t count) {
  uint32_t sets[8] = {99, 99, 99, 99, 99, 99, 99, 99};
  int32_t there = -1;
  CHECK(hvrun_process_set_list(NULL, NULL, 0, &there) == HVRUN_OK && there == count);
  CHECK(hvrun_process_set_list(NULL, sets, 8, &there) == HVRUN_OK && there == count);
  for (int32_t i = 0; i < count && i < 8; ++i) CHECK(sets[i] == expected[i]);
}

/* Set 1: the even ranks, in the options; set 2: the last and the first, in that order. */
static void the_first_sets_are_there(int size) {
  const uint32_t expected[3] = {0, 1, 2};
  listed_sets_are(expected, 3);
  int32_t ranks[64], count = -1;
  CHECK(hvrun_process_set_ranks(NULL, 0, ranks, 64, &count) == HVRUN_OK && count == size);
  CHECK(hvrun_process_set_ranks(NULL, 2, ranks, 64, &count) == HVRUN_OK && count == 2);
  CHECK(ranks[0] == 0 && ranks[1] == size - 1);
  CHECK(hvrun_process_set_ranks(NULL, 2, ranks, 1, &count) == HVRUN_OK && count == 2);
  CHECK(hvrun_process_set_ranks(NULL, 77, ranks, 64, &count) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("no process set 77");
}

static void members_work_among_themselves(int rank, int size) {
  int64_t value = rank + 1, expected = 0;
  for (int one = 0; one < size; one += 2) expected += one + 1;
  if (is_even_member(rank)) {
    CHECK(sum_in(1, "mine", &value) == HVRUN_OK && value == expected);
  } else {
    CHECK(sum_in(1, "mine", &value) == HVRUN_ERROR_ARGUMENT);
    CHECK_SAYS("is not in process set 1, which has ranks 0");
  }
}

/* The root of a broadcast is a place in the set: 1 is the job's last rank. */
static void a_root_is_a_place_in_the_set(int rank, int size) {
  if (rank != 0 && rank != size - 1) return;
  int64_t value = 1000 + rank;
  hvrun_request request = sum_of("from the last", NULL, 0, &value, &value);
  request.operation = HVRUN_BROADCAST;
  request.type = HVRUN_INT64;
  request.process_set = 2;
  request.root = 1;
  hvrun_handle handle;
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
  CHECK(hvrun_wait(NULL, handle, -1, NULL) == HVRUN_OK && value == 1000 + size - 1);
  CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
  request.root = 2;
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("root 2 is not among the 2 ranks of process set 2");
}

/* Rank 0 has enqueued in set 2 what its peer there enqueues only when all have worked in set 0 and
 * 1: were sets to wait for each other, this would never end. The name is in flight in both. */
static void a_set_that_waits_holds_up_no_other(int rank, int size) {
  int64_t slow = 1, sum = 0;
  hvrun_handle handle = HVRUN_NO_HANDLE;
  hvrun_request request = sum_of("the same name", NULL, 0, &slow, &slow);
  request.type = HVRUN_INT64;
  request.process_set = 2;
  if (rank == 0) CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
  for (int round = 0; round < 100; ++round) {
    sum = 1;
    CHECK(sum_in(0, "the same name", &sum) == HVRUN_OK && sum == size);
    if (!is_even_member(rank)) continue;
    sum = 1;
    CHECK(sum_in(1, "the same name", &sum) == HVRUN_OK && sum == (size + 1) / 2);
  }
  if (rank == 0) CHECK(hvrun_poll(NULL, handle) == HVRUN_IN_PROGRESS);
  CHECK(hvrun_barrier(NULL) == HVRUN_OK);
  if (rank == size - 1) CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
  if (rank != 0 && rank != size - 1) return;
  CHECK(hvrun_wait(NULL, handle, -1, NULL) == HVRUN_OK && slow == 2);
  CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
}

static void what_cannot_be_added_is_told_on_every_rank(int size) {
  uint32_t set = 99;
  const int32_t twice[2] = {1, 1}, unknown[2] = {0, size}, same[2] = {size - 1, 0};
  CHECK(hvrun_process_set_add(NULL, twice, 2, &set) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("rank 1 is named twice");
  CHECK(hvrun_process_set_add(NULL, unknown, 2, &set) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("is not among the job's");
  CHECK(hvrun_process_set_add(NULL, same, 2, &set) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("set 2 has the same");
  CHECK(hvrun_process_set_add(NULL, NULL, 0, &set) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("needs at least one");
  CHECK(hvrun_process_set_add(NULL, NULL, 2, &set) == HVRUN_ERROR_ARGUMENT);
  CHECK(hvrun_process_set_add(NULL, same, -1, &set) == HVRUN_ERROR_ARGUMENT);
  CHECK(set == 99);
}

static void ranks_that_disagree_are_told(int rank) {
  uint32_t set = 99;
  const int32_t mine = rank == 0 ? 1 : 2;
  CHECK(hvrun_process_set_add(NULL, &mine, 1, &set) == HVRUN_ERROR_MISMATCH);
  CHECK_SAYS("rank 0 has");
}

static void sets_come_and_go(int rank, int size) {
  int32_t but_first[64];
  for (int i = 0; i < size - 1; ++i) but_first[i] = size - 1 - i;
  for (uint32_t round = 0; round < 20; ++round) {
    uint32_t set = 0;
    CHECK(hvrun_process_set_add(NULL, but_first, size - 1, &set) == HVRUN_OK);
    CHECK(set == 3 + round);
    int64_t value = 1;
    if (rank > 0) CHECK(sum_in(set, "x", &value) == HVRUN_OK && value == size - 1);
    CHECK(hvrun_process_set_remove(NULL, set) == HVRUN_OK);
    CHECK(sum_in(set, "x", &value) == HVRUN_ERROR_ARGUMENT);
    CHECK_SAYS("any more");
    CHECK(hvrun_process_set_remove(NULL, set) == HVRUN_ERROR_ARGUMENT);
  }
  CHECK(hvrun_process_set_remove(NULL, 0) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("all ranks");
  const uint32_t left[3] = {0, 1, 2};
  listed_sets_are(left, 3);
}

/* What nobody else has enqueued when the set goes completes all the same. */
static void a_removal_ends_what_waits(int rank) {
  int64_t value = 1;
  hvrun_handle handle = HVRUN_NO_HANDLE;
  hvrun_request request = sum_of("never", NULL, 0, &value, &value);
  request.type = HVRUN_INT64;
  request.process_set = 1;
  if (rank == 0) CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
  CHECK(hvrun_process_set_remove(NULL, 1) == HVRUN_OK);
  if (rank != 0) return;
  CHECK(hvrun_wait(NULL, handle, -1, NULL) == HVRUN_ERROR_SHUTDOWN);
  CHECK_SAYS("process set 1");
  CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
}

static void wrong_first_sets_are_refused(void) {
  const int32_t unknown = 1000;
  const hvrun_rank_list lists[2] = {{&unknown, 1}, {NULL, 1}};
  hvrun_options options = HVRUN_OPTIONS_INIT;
  hvrun_context* context = NULL;
  options.process_set_count = 1;
  CHECK(hvrun_init(&options, &context) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("process_sets is NULL");
  options.process_sets = &lists[1];
  CHECK(hvrun_init(&options, &context) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("process_sets[0]: ranks is NULL");
  options.process_sets = &lists[0];
  CHECK(hvrun_init(&options, &context) == HVRUN_ERROR_ARGUMENT);
  CHECK_SAYS("rank 1000 is not among the job's");
  CHECK(context == NULL);
}

int main(void) {
  /* The size is known before the sets are named, as a program knows it that counts its hosts. */
  const int size = atoi(getenv("HVRUN_SIZE"));
  int32_t even[64];
  size_t evens = 0;
  for (int rank = 0; rank < size; rank += 2) even[evens++] = rank;
  const int32_t ends[2] = {size - 1, 0};
  const hvrun_rank_list lists[2] = {{even, evens}, {ends, 2}};
  hvrun_options options = HVRUN_OPTIONS_INIT;
  options.process_sets = lists;
  options.process_set_count = 2;
  if (hvrun_init(&options, NULL) != HVRUN_OK) {
    fprintf(stderr, "%s\n", hvrun_last_error());
    return 1;
  }
  const int rank = hvrun_rank(NULL);
  the_first_sets_are_there(size);
  members_work_among_themselves(rank, size);
  a_root_is_a_place_in_the_set(rank, size);
  a_set_that_waits_holds_up_no_other(rank, size);
  what_cannot_be_added_is_told_on_every_rank(size);
  ranks_that_disagree_are_told(rank);
  sets_come_and_go(rank, size);
  a_removal_ends_what_waits(rank);
  CHECK(hvrun_shutdown(NULL) == HVRUN_OK);
  wrong_first_sets_are_refused();
  if (failures == 0) printf("rank %d: all is as it should be\n", rank);
  return failures > 0;
}
