/* Two teams that work side by side: the even ranks and the odd ones, each with a sum of its own.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   cc process_sets.c -o process_sets $(pkg-config --cflags --libs hvrun) \
 *     -Wl,-rpath,$(pkg-config --variable=libdir hvrun)
 *   hvrun -np 4 ./process_sets
 *
 * Every rank names every set, those too that it is not in; operations are the members' own affair.
 */
#include <hvrun/hvrun.h>
#include <stdio.h>
#include <stdlib.h>

static void check(hvrun_status status) {
  if (status == HVRUN_OK) return;
  fprintf(stderr, "process_sets: %s\n", hvrun_last_error());
  exit(1);
}

/* Adds the ranks first, first + 2, first + 4 and so on; returns the new set's number. */
static uint32_t add_every_other(int first, int size) {
  int32_t* const ranks = malloc((size_t)size * sizeof *ranks);
  int32_t count = 0;
  uint32_t set = 0;
  if (ranks == NULL) exit(1);
  for (int rank = first; rank < size; rank += 2) ranks[count++] = rank;
  check(hvrun_process_set_add(NULL, ranks, count, &set));
  free(ranks);
  return set;
}

/* The sum of the members' numbers. */
static int64_t sum_within(uint32_t set, int64_t number) {
  hvrun_request request = HVRUN_REQUEST_INIT;
  hvrun_handle handle;
  request.operation = HVRUN_ALLREDUCE;
  request.type = HVRUN_INT64;
  request.name = "sum of the team";
  request.process_set = set;
  request.input = &number;
  request.output = &number;
  check(hvrun_enqueue(NULL, &request, &handle));
  check(hvrun_wait(NULL, handle, -1, NULL));
  check(hvrun_release(NULL, handle));
  return number;
}

static void expect(int is_true, const char* what) {
  if (is_true) return;
  fprintf(stderr, "process_sets: rank %d: %s\n", hvrun_rank(NULL), what);
  exit(1);
}

/* What there is can be asked for: first how many, then their numbers. */
static void expect_sets(const uint32_t* expected, int32_t expected_count) {
  uint32_t sets[3];
  int32_t count = 0;
  check(hvrun_process_set_list(NULL, NULL, 0, &count));
  expect(count == expected_count && count <= 3, "how many sets there are");
  check(hvrun_process_set_list(NULL, sets, count, &count));
  for (int32_t i = 0; i < count; ++i) expect(sets[i] == expected[i], "the numbers of the sets");
}

/* The ranks first, first + 2 and so on are in it, whether this rank is or not. */
static void expect_every_other(uint32_t set, int first, int size) {
  int32_t* const ranks = malloc((size_t)size * sizeof *ranks);
  int32_t count = 0;
  if (ranks == NULL) exit(1);
  check(hvrun_process_set_ranks(NULL, set, ranks, size, &count));
  expect(count == (size - first + 1) / 2, "how many ranks are in the set");
  for (int32_t i = 0; i < count; ++i) expect(ranks[i] == first + 2 * i, "the ranks in the set");
  free(ranks);
}

int main(void) {
  check(hvrun_init(NULL, NULL));
  const int rank = hvrun_rank(NULL), size = hvrun_size(NULL);
  if (size < 2) {
    fprintf(stderr, "process_sets: two teams need two ranks; try: hvrun -np 4 ./process_sets\n");
    check(hvrun_shutdown(NULL));
    return 2;
  }
  const uint32_t even = add_every_other(0, size);
  const uint32_t odd = add_every_other(1, size);
  expect_sets((const uint32_t[]){0, even, odd}, 3); /* 0: that of all ranks */
  expect_every_other(even, 0, size);
  expect_every_other(odd, 1, size);
  int64_t expected = 0;
  for (int member = rank % 2; member < size; member += 2) expected += member;
  const int64_t sum = sum_within(rank % 2 == 0 ? even : odd, rank);
  expect(sum == expected, "the sum of the team's numbers");
  printf("I am rank %d, among the %s ones: our numbers add up to %lld\n", rank,
         rank % 2 == 0 ? "even" : "odd", (long long)sum);
  check(hvrun_process_set_remove(NULL, odd));
  check(hvrun_process_set_remove(NULL, even));
  expect_sets((const uint32_t[]){0}, 1);
  check(hvrun_shutdown(NULL));
  return 0;
}
