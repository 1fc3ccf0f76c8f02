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
  fprintf(stderr, "process_sets: rank %d: %s\n", hvrun_rank(NULL), hvrun_last_error());
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
  const int64_t sum = sum_within(rank % 2 == 0 ? even : odd, rank);
  printf("I am rank %d, among the %s ones: our numbers add up to %lld\n", rank,
         rank % 2 == 0 ? "even" : "odd", (long long)sum);
  check(hvrun_process_set_remove(NULL, odd));
  check(hvrun_process_set_remove(NULL, even));
  check(hvrun_shutdown(NULL));
  return 0;
}
