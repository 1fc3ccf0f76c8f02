/* What ranks meet beside sums that go well, where MPI carries. SPDX-License-Identifier: Apache-2.0
 *
 * cases NAME: one of the table at the end. Each rank says what it was told; what is not true goes
 * to stderr, and its exit code is 1. */
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "tests/c/check.h"

static int rank_after(int step) {
  return (hvrun_rank(NULL) + step + hvrun_size(NULL)) % hvrun_size(NULL);
}

static float* filled(int64_t count, float from) {
  float* const all = malloc((size_t)(count + 1) * sizeof *all);
  for (int64_t i = 0; i < count; ++i) all[i] = from + (float)(i & 255);
  return all;
}

static hvrun_request pair_of(hvrun_operation operation, const char* name, int other,
                             const int64_t* count, float* data) {
  hvrun_request request = sum_of(name, count, 1, operation == HVRUN_SEND ? data : NULL,
                                 operation == HVRUN_RECEIVE ? data : NULL);
  request.operation = operation;
  request.root = other;
  return request;
}

static hvrun_status await(hvrun_handle handle) {
  const hvrun_status status = hvrun_wait(NULL, handle, -1, NULL);
  hvrun_release(NULL, handle);
  return status;
}

/* Where this rank is; the hosts are those that have its local rank. In one write: launchers mix. */
static void place(void) {
  char line[128];
  const int length =
      snprintf(line, sizeof line, "rank %d of %d, %d of %d here, host %d of %d\n", hvrun_rank(NULL),
               hvrun_size(NULL), hvrun_local_rank(NULL), hvrun_local_size(NULL),
               hvrun_cross_rank(NULL), hvrun_cross_size(NULL));
  CHECK(write(STDOUT_FILENO, line, (size_t)length) == length);
}

/* ---- between two ranks ---- */

enum { kTransfers = 8 };
static const int64_t kSizes[kTransfers] = {
    0, 1, 1000, 100001, 262128, 262129, 262144, 5000000}; /* of 4 bytes; 262144 are 1 MiB */

/* All at once, to the next rank ("r") and to the one before ("l"). The odd ranks begin with what
 * the even ones end with. */
static void pairs(void) {
  const struct {
    const char* name;
    hvrun_operation operation;
    int other;
  } ways[4] = {{"r", HVRUN_SEND, rank_after(1)},
               {"l", HVRUN_SEND, rank_after(-1)},
               {"r", HVRUN_RECEIVE, rank_after(-1)},
               {"l", HVRUN_RECEIVE, rank_after(1)}};
  hvrun_handle handles[kTransfers][4];
  float* data[kTransfers][4];
  for (int step = 0; step < kTransfers; ++step) {
    const int t = hvrun_rank(NULL) % 2 ? kTransfers - 1 - step : step;
    for (int way = 0; way < 4; ++way) {
      char name[8];
      snprintf(name, sizeof name, "%s%d", ways[way].name, t);
      data[t][way] = filled(kSizes[t], way < 2 ? (float)(hvrun_rank(NULL) + t) : -1000);
      const hvrun_request request =
          pair_of(ways[way].operation, name, ways[way].other, &kSizes[t], data[t][way]);
      CHECK(hvrun_enqueue(NULL, &request, &handles[t][way]) == HVRUN_OK);
    }
  }
  for (int t = 0; t < kTransfers; ++t) {
    for (int way = 0; way < 4; ++way) {
      CHECK(await(handles[t][way]) == HVRUN_OK);
      const int from = way < 2 ? hvrun_rank(NULL) : ways[way].other;
      int64_t wrong = 0;
      for (int64_t i = 0; i < kSizes[t]; ++i)
        wrong += data[t][way][i] != (float)(from + t) + (float)(i & 255);
      CHECK(wrong == 0);
      free(data[t][way]);
    }
  }
  float one = 1; /* whoever left now would end what others still wait for */
  CHECK(hvrun_allreduce(NULL, "end", &one, &one, 1, HVRUN_FLOAT32, HVRUN_SUM) == HVRUN_OK);
}

/* Of filled(count, from), what is not so. */
static int64_t strangers(const float* data, int64_t count, float from) {
  int64_t wrong = 0;
  for (int64_t i = 0; i < count; ++i) wrong += data[i] != from + (float)(i & 255);
  return wrong;
}

static void mark(float* data, int64_t count) {
  for (int64_t i = 0; i < count; ++i) data[i] = -7;
}

/* Sums of all ranks, which have MPI go on with whatever it has. */
static void drive(void) {
  for (int i = 0; i < 20; ++i) {
    float one = 1;
    CHECK(hvrun_allreduce(NULL, "all", &one, &one, 1, HVRUN_FLOAT32, HVRUN_SUM) == HVRUN_OK);
    CHECK(one == (float)hvrun_size(NULL));
    usleep(2000); /* sleep-ok: what comes late has to come */
  }
}

/* What has ended is the program's: nobody writes there any more, or reads. */
static void drive_beside(float* data, int64_t count) {
  mark(data, count);
  drive();
  int64_t written = 0;
  for (int64_t i = 0; i < count; ++i) written += data[i] != -7;
  CHECK(written == 0);
}

static const int64_t kLarge = 16 << 20; /* 64 MiB: no MPI has all of it away at once */

/* A set goes while its members send: each is complete or was not, and what a receiver that has
 * given up has back stays as it is. */
static void removed(void) {
  const int32_t both[2] = {0, 1};
  float* const data = malloc((size_t)kLarge * sizeof *data);
  for (int round = 0; round < 10; ++round) {
    uint32_t set = 0;
    CHECK(hvrun_process_set_add(NULL, both, 2, &set) == HVRUN_OK);
    const int sends = hvrun_rank(NULL) == round % 2, is_in = hvrun_rank(NULL) < 2;
    for (int64_t i = 0; i < kLarge; ++i) data[i] = (float)sends + (float)(i & 255);
    hvrun_request request =
        pair_of(sends ? HVRUN_SEND : HVRUN_RECEIVE, "t", 1 - hvrun_rank(NULL), &kLarge, data);
    request.process_set = set;
    hvrun_handle handle;
    /* Now and then only one of them is there. */
    const int comes = is_in && (round % 5 != 4 || sends);
    if (comes) CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
    if (comes && round % 3 != 0) hvrun_wait(NULL, handle, round % 3 == 1 ? 0.001 : 0.01, NULL);
    CHECK(hvrun_process_set_remove(NULL, set) == HVRUN_OK);
    if (comes) {
      const hvrun_status status = await(handle);
      CHECK(status == HVRUN_OK || status == HVRUN_ERROR_SHUTDOWN);
      if (status == HVRUN_OK) CHECK(strangers(data, kLarge, 1) == 0);
    }
    drive_beside(data, kLarge);
  }
  free(data);
  pairs();
}

/* The job ends while others wait for what this rank would send. The next one of the same processes
 * has MPI go on. */
static void left(void) {
  float* const data = malloc((size_t)kLarge * sizeof *data);
  for (int round = 0; round < 6; ++round) {
    const int sends = hvrun_rank(NULL) == round % 2;
    for (int64_t i = 0; i < kLarge; ++i) data[i] = (float)sends + (float)(i & 255);
    hvrun_handle handle;
    const hvrun_request request =
        pair_of(sends ? HVRUN_SEND : HVRUN_RECEIVE, "t", 1 - hvrun_rank(NULL), &kLarge, data);
    if (hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK && round % 3 != 0) /* else it ended */
      hvrun_wait(NULL, handle, round % 3 == 1 ? 0.001 : 0.01, NULL);
    hvrun_shutdown(NULL);
    CHECK(hvrun_init(NULL, NULL) == HVRUN_OK);
    drive_beside(data, kLarge);
  }
  free(data);
}

/* The sender has sent and leaves the job, which may end before the receiver has all. The next job
 * of the same processes gets what is sent in it. */
static void again(void) {
  enum { kMany = 50 };
  const int64_t count = 8;
  const int sends = hvrun_rank(NULL) == 0;
  for (int round = 0; round < 8; ++round) {
    if (round > 0) CHECK(hvrun_init(NULL, NULL) == HVRUN_OK);
    hvrun_handle handles[kMany];
    float data[kMany][8];
    int is_there[kMany];
    for (int i = 0; i < kMany; ++i) {
      char name[16];
      snprintf(name, sizeof name, "t%d", i);
      for (int k = 0; k < count; ++k) data[i][k] = sends ? (float)(round * kMany + i) : -1;
      const hvrun_request request =
          pair_of(sends ? HVRUN_SEND : HVRUN_RECEIVE, name, sends ? 1 : 0, &count, data[i]);
      const hvrun_status status = hvrun_enqueue(NULL, &request, &handles[i]);
      is_there[i] = status == HVRUN_OK;
      /* the sender may have left */
      CHECK(is_there[i] || (status == HVRUN_ERROR_SHUTDOWN && !sends));
    }
    int has_told = 0;
    for (int i = 0; i < kMany; ++i) {
      const hvrun_status status = is_there[i] ? await(handles[i]) : HVRUN_ERROR_SHUTDOWN;
      CHECK(status == HVRUN_OK || (status == HVRUN_ERROR_SHUTDOWN && !sends));
      if (status != HVRUN_OK && !has_told++) /* read where the other rank fails */
        fprintf(stderr, "round %d: rank %d: t%d (%s): %s\n", round, !sends, i,
                is_there[i] ? "enqueued" : "refused", hvrun_last_error());
      for (int k = 0; status == HVRUN_OK && k < count; ++k)
        CHECK(data[i][k] == (float)(round * kMany + i));
    }
    hvrun_shutdown(NULL);
  }
}

/* ---- among all ---- */

static hvrun_status sum_one(const char* name, uint32_t set, float* value) {
  const int64_t one = 1;
  hvrun_request request = sum_of(name, &one, 1, value, value);
  request.process_set = set;
  hvrun_handle handle;
  const hvrun_status status = hvrun_enqueue(NULL, &request, &handle);
  return status == HVRUN_OK ? await(handle) : status;
}

/* Each is an error of its tensor on every rank, and the job goes on. */
static void disagree(void) {
  const int is_odd = hvrun_rank(NULL) == 1;
  for (int what = 0; what < 4; ++what) {
    float data[4] = {0};
    const int64_t count = what == 0 && is_odd ? 3 : 4;
    hvrun_request request = sum_of("d", &count, 1, data, data);
    if (what == 1 && is_odd) request.type = HVRUN_INT32;
    if (what == 2 && is_odd) request.reduction = HVRUN_MAX;
    if (what == 3) {
      request.operation = HVRUN_BROADCAST;
      request.root = is_odd;
    }
    hvrun_handle handle;
    CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
    CHECK(await(handle) == HVRUN_ERROR_MISMATCH);
    printf("told: %s\n", hvrun_last_error());
    float one = 1;
    CHECK(sum_one("after", 0, &one) == HVRUN_OK && one == (float)hvrun_size(NULL));
  }
}

/* Rank r has r + 1 batches; those that have none left give zeros. */
static void join(void) {
  const int size = hvrun_size(NULL);
  for (int batch = 0; batch <= hvrun_rank(NULL); ++batch) {
    float value = 1;
    CHECK(sum_one("batch", 0, &value) == HVRUN_OK && value == (float)(size - batch));
  }
  int32_t last = -1;
  CHECK(hvrun_join(NULL, &last) == HVRUN_OK && last == size - 1);
  float value = 1;
  CHECK(sum_one("batch", 0, &value) == HVRUN_OK && value == (float)size);
}

enum { kGrouped = 4 };

/* They travel when all of them are there, and one that does not fit fails all of them. */
static void group(void) {
  for (int is_wrong = 0; is_wrong < 2; ++is_wrong) {
    static const char* const names[kGrouped] = {"g0", "g1", "g2", "g3"};
    float values[kGrouped][2];
    hvrun_handle handles[kGrouped];
    for (int i = 0; i < kGrouped; ++i) {
      const int at = hvrun_rank(NULL) % 2 ? kGrouped - 1 - i : i;
      const int64_t count = is_wrong && at == 2 && hvrun_rank(NULL) == 0 ? 1 : 2;
      values[at][0] = values[at][1] = (float)at;
      hvrun_request request = sum_of(names[at], &count, 1, values[at], values[at]);
      request.group = 7;
      request.group_size = kGrouped;
      CHECK(hvrun_enqueue(NULL, &request, &handles[at]) == HVRUN_OK);
    }
    for (int i = 0; i < kGrouped; ++i) {
      CHECK(await(handles[i]) == (is_wrong ? HVRUN_ERROR_MISMATCH : HVRUN_OK));
      CHECK(is_wrong || values[i][1] == (float)(i * hvrun_size(NULL)));
    }
  }
}

/* MPI has none: native does it, beside sums that MPI carries. */
static void sparse(void) {
  const int rank = hvrun_rank(NULL), size = hvrun_size(NULL);
  const int64_t shape[2] = {2, 2};
  const int64_t indices[2] = {0, rank + 1};
  const float rows[4] = {1, 1, 2, 2};
  hvrun_request request = sum_of("s", shape, 2, rows, NULL);
  request.operation = HVRUN_SPARSE_ALLREDUCE;
  request.index_type = HVRUN_INT64;
  request.indices = indices;
  for (int round = 0; round < 3; ++round) {
    hvrun_handle handle;
    hvrun_result result = HVRUN_RESULT_INIT;
    CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
    float one = 1;
    CHECK(sum_one("beside", 0, &one) == HVRUN_OK && one == (float)size);
    CHECK(hvrun_wait(NULL, handle, -1, &result) == HVRUN_OK);
    float sums[2] = {0, 0}; /* of row 0, of all others */
    for (int64_t row = 0; result.shape != NULL && row < result.shape[0]; ++row)
      sums[((const int64_t*)result.indices)[row] != 0] += ((const float*)result.data)[2 * row];
    CHECK(sums[0] == (float)size && sums[1] == (float)(2 * size));
    hvrun_release(NULL, handle);
  }
}

/* Each two neighbours are a set: a rank is in two, and goes through them in an order of its own. */
static void sets(void) {
  const int rank = hvrun_rank(NULL), size = hvrun_size(NULL);
  uint32_t numbers[16];
  for (int first = 0; first < size; ++first) {
    const int32_t both[2] = {first, (first + 1) % size};
    CHECK(hvrun_process_set_add(NULL, both, 2, &numbers[first]) == HVRUN_OK);
  }
  for (int round = 0; round < 50; ++round) {
    const int64_t one = 1;
    float values[2] = {(float)rank, (float)rank};
    hvrun_handle handles[2];
    for (int i = 0; i < 2; ++i) {
      const int second = (i + rank + round) % 2;
      hvrun_request request = sum_of("w", &one, 1, &values[second], &values[second]);
      request.process_set = numbers[second ? rank : (rank + size - 1) % size];
      CHECK(hvrun_enqueue(NULL, &request, &handles[second]) == HVRUN_OK);
    }
    for (int i = 0; i < 2; ++i) CHECK(await(handles[i]) == HVRUN_OK);
    CHECK(values[0] == (float)(rank + rank_after(-1)) &&
          values[1] == (float)(rank + rank_after(1)));
  }
  for (int first = 0; first < size; ++first)
    CHECK(hvrun_process_set_remove(NULL, numbers[first]) == HVRUN_OK);
}

/* Rank 1 waits for another tensor than the others, until that ends the job. */
static void stall(void) {
  float value = 1;
  CHECK(sum_one("v", 0, &value) == HVRUN_OK);
  if (hvrun_rank(NULL) == 1) usleep(500000); /* sleep-ok: the others wait for longer */
  CHECK(sum_one(hvrun_rank(NULL) == 1 ? "other" : "w", 0, &value) == HVRUN_ERROR_STALLED);
  const char* const words = strstr(hvrun_last_error(), "tensor 'w' has");
  printf("told: %s\n", words == NULL ? hvrun_last_error() : words);
}

static double seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* How often this thread has gone to sleep. */
static long sleeps(void) {
  struct rusage usage;
  CHECK(getrusage(RUSAGE_THREAD, &usage) == 0);
  return usage.ru_nvcsw;
}

/* A set's sum; how long it took, and how often this thread slept meanwhile, where that is less than
 * before. */
static void time_sum(uint32_t set, double* shortest, long* fewest) {
  const long slept = sleeps();
  const double begun = seconds();
  float value = 1;
  CHECK(sum_one("w", set, &value) == HVRUN_OK && value == 2);
  if (sleeps() - slept < *fewest) *fewest = sleeps() - slept;
  if (seconds() - begun < *shortest) *shortest = seconds() - begun;
}

/* Communicators take 130 ms (slow_group.c). Whoever waits for one sleeps, and wakes when it is
 * there: what it looks after by itself, every 100 ms, would have it up after 200. */
static void slow_group(void) {
  const int32_t both[2] = {0, 1};
  const int is_in = hvrun_rank(NULL) < 2;
  double shortest = 1e9;
  long fewest = LONG_MAX;
  for (int round = 0; round < 5; ++round) {
    uint32_t set = 0;
    CHECK(hvrun_process_set_add(NULL, both, 2, &set) == HVRUN_OK);
    if (is_in) time_sum(set, &shortest, &fewest);
    CHECK(hvrun_process_set_remove(NULL, set) == HVRUN_OK);
  }
  if (!is_in) return;
  printf("waited for %.0f ms and slept %ld times\n", 1000 * shortest, fewest);
  CHECK(shortest < 0.17 && fewest < 100);
}

/* Rank 0, by which all leave, hangs when the others do. */
static void hanging(void) {
  float value = 1;
  CHECK(sum_one("v", 0, &value) == HVRUN_OK);
  if (hvrun_rank(NULL) > 0) return;
  printf("hangs: %d\n", (int)getpid());
  fflush(stdout);
  raise(SIGSTOP);
}

static const struct {
  const char* name;
  void (*run)(void);
} kCases[] = {{"place", place},    {"pairs", pairs}, {"removed", removed},
              {"left", left},      {"again", again}, {"disagree", disagree},
              {"join", join},      {"group", group}, {"sparse", sparse},
              {"sets", sets},      {"stall", stall}, {"slow_group", slow_group},
              {"hanging", hanging}};

int main(int argc, char** argv) {
  for (size_t i = 0; argc == 2 && i < sizeof kCases / sizeof *kCases; ++i) {
    if (strcmp(argv[1], kCases[i].name) != 0) continue;
    CHECK(hvrun_init(NULL, NULL) == HVRUN_OK);
    kCases[i].run();
    hvrun_shutdown(NULL);
    printf("ended\n");
    return failures == 0 ? 0 : 1;
  }
  return 2;
}
