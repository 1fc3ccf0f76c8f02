/* Tests of hvrun.h from C over every type, reduction and root, and of what a wait that is too early
 * says: hvrun -np N types_test RANKS_OF_HOST...
 * SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "tests/c/check.h"
#include "tests/c/elements.h"

enum { kMostRanks = 16, kMostCount = 1001 };

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Enqueues, waits and releases. */
static hvrun_status carry_out(const hvrun_request* request) {
  hvrun_handle handle;
  hvrun_status status = hvrun_enqueue(NULL, request, &handle);
  if (status != HVRUN_OK) return status;
  status = hvrun_wait(NULL, handle, 60, NULL);
  CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
  return status;
}

/* What rank gives at index. Sums, products and scaled ones of a few are exact in every type; of
 * 8-bit floats only where the numbers are small. */
static double given(hvrun_type type, int rank, size_t index, int is_scaled) {
  static const double large[] = {0, 1, 2, 3, 5, 7, -3, -2}, small[] = {2, 0, -1, 1, 2};
  const size_t at = index * (size_t)(rank % 3 + 1) + (size_t)rank;
  const int is_small = is_scaled || type >= HVRUN_FLOAT8_E4M3;
  const double value = is_small ? small[at % 5] : large[at % 8];
  return is_signed(type) ? value : fabs(value);
}

static void fill(hvrun_type type, void* data, size_t count, int rank, int is_scaled) {
  for (size_t i = 0; i < count; ++i) store_element(type, data, i, given(type, rank, i, is_scaled));
}

static int count_wrong(const hvrun_request* request, double tolerance, size_t count, int size) {
  const int is_scaled = request->prescale != 0;
  int wrong = 0;
  for (size_t i = 0; i < count; ++i) {
    double values[kMostRanks];
    for (int r = 0; r < size; ++r) values[r] = given(request->type, r, i, is_scaled);
    const double expected = reduced(request, values, size);
    const double actual = load_element(request->type, request->output, i);
    if (fabs(actual - expected) <= tolerance * fabs(expected)) continue;
    if (++wrong == 1)
      fprintf(stderr, "%s: element %zu is %g, not %g\n", request->name, i, actual, expected);
  }
  return wrong;
}

static void one_allreduce(const element* held, hvrun_request request, size_t count, int size) {
  const int is_scaled = request.prescale != 0, is_in_place = request.input == request.output;
  const int averages = request.reduction == HVRUN_AVERAGE;
  const int has_meaning = held->type != HVRUN_BOOL || !(is_scaled || averages);
  char name[80];
  snprintf(name, sizeof name, "%s reduction %d%s%s, %zu", held->name, (int)request.reduction,
           is_scaled ? ", scaled" : "", is_in_place ? ", in place" : "", count);
  request.name = name;
  request.type = held->type;
  fill(held->type, (void*)(uintptr_t)request.input, count, hvrun_rank(NULL), is_scaled);
  const hvrun_status status = carry_out(&request);
  CHECK(status == (has_meaning ? HVRUN_OK : HVRUN_ERROR_UNSUPPORTED));
  if (has_meaning) CHECK(count_wrong(&request, held->tolerance, count, size) == 0);
  if (!has_meaning) CHECK_SAYS("bool takes neither average nor scales");
}

/* Every type x reduction x in place or not x scaled or not, of one element and of many. */
static void every_allreduce_is_right(int size) {
  static double input[kMostCount], output[kMostCount];
  static const hvrun_reduction reductions[] = {HVRUN_SUM, HVRUN_AVERAGE, HVRUN_MIN, HVRUN_MAX,
                                               HVRUN_PRODUCT};
  static const int64_t shapes[2][2] = {{1, 1}, {7, kMostCount / 7}};
  for (int t = 0; t < kElementTypes; ++t) {
    CHECK(hvrun_type_size(kElements[t].type) == kElements[t].bytes);
    for (int variant = 0; variant < 5 * 8; ++variant) {
      const int64_t* shape = shapes[variant & 1];
      hvrun_request request = sum_of("", shape, 2, input, variant & 2 ? input : output);
      request.reduction = reductions[variant / 8];
      request.prescale = variant & 4 ? 2 : 0;
      request.postscale = variant & 4 ? 1.5 : 0;
      one_allreduce(&kElements[t], request, (size_t)(shape[0] * shape[1]), size);
    }
  }
}

/* Rank 0 has no row at all, the others one more than the one before. */
static void every_type_is_gathered_by_rank(int rank, int size) {
  enum { kColumns = 3 };
  for (int t = 0; t < kElementTypes; ++t) {
    const hvrun_type type = kElements[t].type;
    const int64_t shape[2] = {rank, kColumns};
    double input[kMostRanks * kColumns];
    hvrun_request request = sum_of(kElements[t].name, shape, 2, input, NULL);
    hvrun_result result = HVRUN_RESULT_INIT;
    hvrun_handle handle;
    size_t at = 0;
    request.operation = HVRUN_ALLGATHER;
    request.type = type;
    fill(type, input, (size_t)rank * kColumns, rank, 0);
    CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
    CHECK(hvrun_wait(NULL, handle, 60, &result) == HVRUN_OK);
    CHECK(result.type == type && result.ndim == 2 && result.shape[1] == kColumns);
    CHECK(result.shape[0] == size * (size - 1) / 2);
    for (int r = 0; r < size; ++r) {
      for (size_t i = 0; i < (size_t)r * kColumns; ++i, ++at)
        CHECK(load_element(type, result.data, at) == as_held(type, given(type, r, i, 0)));
    }
    CHECK(result.bytes == at * kElements[t].bytes);
    CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
  }
}

/* In place by the blocking call; and from an input that only the root has. */
static void every_root_gives_its_values_to_all(int rank, int size) {
  enum { kCount = 37 };
  const int64_t shape[1] = {kCount};
  double input[kCount], output[kCount];
  for (int t = 0; t < kElementTypes; ++t) {
    const hvrun_type type = kElements[t].type;
    for (int root = 0; root < size; ++root) {
      fill(type, input, kCount, rank, 0);
      fill(type, output, kCount, size, 0);
      hvrun_request request = sum_of("from", shape, 1, rank == root ? input : NULL, output);
      request.operation = HVRUN_BROADCAST;
      request.type = type;
      request.root = root;
      CHECK(carry_out(&request) == HVRUN_OK);
      CHECK(hvrun_broadcast(NULL, "in place", input, kCount, type, root) == HVRUN_OK);
      for (size_t i = 0; i < kCount; ++i) {
        const double expected = as_held(type, given(type, root, i, 0));
        CHECK(load_element(type, output, i) == expected &&
              load_element(type, input, i) == expected);
      }
    }
  }
}

/* The others enqueue only behind a barrier, which rank 0 enters when it has looked. */
static void what_others_have_not_enqueued_is_in_progress(int rank, int size) {
  float value = 1;
  hvrun_request request = sum_of("late", NULL, 0, &value, &value);
  hvrun_handle handle;
  if (size < 2) return;
  if (rank != 0) CHECK(hvrun_barrier(NULL) == HVRUN_OK);
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
  if (rank == 0) {
    const double began = seconds_now();
    CHECK(hvrun_poll(NULL, handle) == HVRUN_IN_PROGRESS);
    CHECK(hvrun_wait(NULL, handle, 0, NULL) == HVRUN_IN_PROGRESS);
    CHECK(seconds_now() - began < 5);
    CHECK(hvrun_wait(NULL, handle, 0.05, NULL) == HVRUN_IN_PROGRESS);
    CHECK(seconds_now() - began >= 0.05);
    CHECK(hvrun_poll(NULL, handle) == HVRUN_IN_PROGRESS);
    CHECK(value == 1);
    CHECK(hvrun_barrier(NULL) == HVRUN_OK);
  }
  const double deadline = seconds_now() + 60;
  hvrun_status status = HVRUN_IN_PROGRESS;
  while (status == HVRUN_IN_PROGRESS && seconds_now() < deadline) {
    sched_yield();
    status = hvrun_poll(NULL, handle);
  }
  CHECK(status == HVRUN_OK && value == (float)size);
  CHECK(hvrun_wait(NULL, handle, 0, NULL) == HVRUN_OK);
  CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
}

/* ranks_of_host: how many ranks each host has, in order. */
static void the_six_numbers_are_right(char** ranks_of_host) {
  const int rank = hvrun_rank(NULL);
  int size = 0, host = 0, before = 0, rank_of_same = 0, of_same = 0;
  for (char** given_ranks = ranks_of_host; *given_ranks != NULL; ++given_ranks)
    size += atoi(*given_ranks);
  while (rank - before >= atoi(ranks_of_host[host])) before += atoi(ranks_of_host[host++]);
  const int local_rank = rank - before;
  for (int h = 0; ranks_of_host[h] != NULL; ++h) {
    if (atoi(ranks_of_host[h]) <= local_rank) continue;
    rank_of_same += h < host;
    ++of_same;
  }
  CHECK(hvrun_size(NULL) == size && rank >= 0 && rank < size);
  CHECK(hvrun_local_rank(NULL) == local_rank);
  CHECK(hvrun_local_size(NULL) == atoi(ranks_of_host[host]));
  CHECK(hvrun_cross_rank(NULL) == rank_of_same);
  CHECK(hvrun_cross_size(NULL) == of_same);
}

int main(int argc, char** argv) {
  if (argc < 2 || hvrun_init(NULL, NULL) != HVRUN_OK) {
    fprintf(stderr, "types_test RANKS_OF_HOST...: %s\n", hvrun_last_error());
    return 1;
  }
  const int rank = hvrun_rank(NULL), size = hvrun_size(NULL);
  the_six_numbers_are_right(argv + 1);
  every_allreduce_is_right(size);
  every_type_is_gathered_by_rank(rank, size);
  every_root_gives_its_values_to_all(rank, size);
  what_others_have_not_enqueued_is_in_progress(rank, size);
  CHECK(hvrun_shutdown(NULL) == HVRUN_OK);
  if (failures == 0) printf("types_test: rank %d of %d: all good\n", rank, size);
  return failures == 0 ? 0 : 1;
}
