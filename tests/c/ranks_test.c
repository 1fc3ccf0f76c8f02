/* Tests of hvrun.h from C with several ranks: hvrun -np N ranks_test.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/c/check.h"

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

/* The input lies where its rows will be, as programs do that gather in place; at the beginning; and
 * elsewhere. Rows are many, so that some arrive before all are sent. */
static void a_gather_may_read_from_inside_its_output(int rank, int size) {
  const int64_t few = 70000, many = 400000, total = few + (size - 1) * many;
  const int64_t rows = rank == 0 ? few : many;
  const int64_t first = rank == 0 ? 0 : few + (rank - 1) * many;
  const int64_t starts[3] = {first, 0, total / 2};
  int64_t* output = malloc((size_t)(total + many) * sizeof *output);
  for (int place = 0; place < 3; ++place) {
    int64_t* input = output + starts[place];
    int64_t wrong = 0;
    for (int64_t i = 0; i < rows; ++i) input[i] = first + i;
    hvrun_request gather = sum_of("in place", &rows, 1, input, output);
    gather.operation = HVRUN_ALLGATHER;
    gather.type = HVRUN_INT64;
    hvrun_handle handle;
    CHECK(hvrun_enqueue(NULL, &gather, &handle) == HVRUN_OK);
    CHECK(hvrun_wait(NULL, handle, -1, NULL) == HVRUN_OK);
    for (int64_t i = 0; i < total; ++i) wrong += output[i] != i;
    CHECK(wrong == 0);
    CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
  }
  free(output);
}

/* Only the rank whose output is too small gets an error; nothing is written there. */
static void a_gather_is_not_written_beyond_the_output(int rank, int size) {
  if (size < 2) return;
  const int64_t rows = 3;
  const int32_t input[3] = {rank, rank, rank};
  int32_t* output = calloc((size_t)(size * rows), sizeof *output);
  const int is_small = rank == size - 1;
  hvrun_request gather = sum_of("small", &rows, 1, input, output);
  gather.operation = HVRUN_ALLGATHER;
  gather.type = HVRUN_INT32;
  gather.output_bytes = (size_t)(size * rows) * sizeof *output - (size_t)is_small;
  hvrun_handle handle;
  CHECK(hvrun_enqueue(NULL, &gather, &handle) == HVRUN_OK);
  CHECK(hvrun_wait(NULL, handle, -1, NULL) == (is_small ? HVRUN_ERROR_ARGUMENT : HVRUN_OK));
  if (is_small) CHECK_SAYS("output_bytes is");
  CHECK(output[size * rows - 1] == (is_small ? 0 : size - 1));
  CHECK(output[rows] == (is_small ? 0 : 1));
  CHECK(hvrun_release(NULL, handle) == HVRUN_OK);
  free(output);
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

static int open_descriptors(void) {
  int count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (readdir(directory) != NULL) ++count;
  closedir(directory);
  return count;
}

/* A DataLoader's worker must not hold the rank's sockets open when the rank has died. */
static void a_forked_child_keeps_no_descriptor_of_ours(int before_init) {
  int state = 0;
  const pid_t child = fork();
  if (child == 0) _exit(open_descriptors() == before_init ? 0 : 1);
  CHECK(waitpid(child, &state, 0) == child && WIFEXITED(state) && WEXITSTATUS(state) == 0);
}

static long elapsed_ms(struct timespec since) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (now.tv_sec - since.tv_sec) * 1000 + (now.tv_nsec - since.tv_nsec) / 1000000;
}

static pthread_barrier_t together;

static void* init_together(void* status) {
  pthread_barrier_wait(&together);
  *(hvrun_status*)status = hvrun_init(NULL, NULL);
  return NULL;
}

static void* shut_down_together(void* milliseconds) {
  struct timespec start;
  pthread_barrier_wait(&together);
  clock_gettime(CLOCK_MONOTONIC, &start);
  *(long*)milliseconds = hvrun_shutdown(NULL) == HVRUN_OK ? elapsed_ms(start) : -1;
  return NULL;
}

/* One joins, one leaves; the other waits for that. */
static void two_threads_join_and_leave_as_one(int rank, int size) {
  pthread_t threads[2];
  hvrun_status status[2];
  long took_ms[2];
  float value = 1;
  pthread_barrier_init(&together, NULL, 2);
  for (int i = 0; i < 2; ++i) CHECK(!pthread_create(&threads[i], NULL, init_together, &status[i]));
  for (int i = 0; i < 2; ++i) CHECK(!pthread_join(threads[i], NULL) && status[i] == HVRUN_OK);
  CHECK(hvrun_allreduce(NULL, "x", &value, &value, 1, HVRUN_FLOAT32, HVRUN_SUM) == HVRUN_OK);
  CHECK(value == (float)size);
  if (rank != 0) {
    CHECK(hvrun_barrier(NULL) == HVRUN_ERROR_SHUTDOWN); /* as soon as rank 0 leaves */
    CHECK(hvrun_shutdown(NULL) == HVRUN_OK);
    return;
  }
  for (int i = 0; i < 2; ++i)
    CHECK(!pthread_create(&threads[i], NULL, shut_down_together, &took_ms[i]));
  for (int i = 0; i < 2; ++i) CHECK(!pthread_join(threads[i], NULL));
  for (int i = 0; i < 2; ++i) CHECK(took_ms[i] >= 0 && took_ms[i] < 4000);
}

static void do_nothing(int number) { (void)number; }

/* A program's timers: their signals interrupt whatever it waits in. */
static void ring_every(int microseconds) {
  struct sigaction action;
  const struct itimerval timer = {{0, microseconds}, {0, microseconds}};
  memset(&action, 0, sizeof action);
  action.sa_handler = do_nothing;
  CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

/* Joining anew in the same process: another epoch of the same job, of which nothing stays. */
static void it_can_begin_again(int rank, int size, int before_init, int rounds) {
  enum { kSettled = 20, kWindow = 20, kBound = 2 << 20 };
  long early = LONG_MAX, late = LONG_MAX; /* the least of a window, which chance does not move */
  for (int round = 0; round < rounds; ++round) {
    const long resident = resident_bytes();
    if (round >= kSettled && round < kSettled + kWindow && resident < early) early = resident;
    if (round >= rounds - kWindow && resident < late) late = resident;
    float value = (float)rank;
    CHECK(hvrun_init(NULL, NULL) == HVRUN_OK);
    CHECK(hvrun_allreduce(NULL, "x", &value, &value, 1, HVRUN_FLOAT32, HVRUN_SUM) == HVRUN_OK);
    CHECK(value == (float)(size * (size - 1) / 2));
    CHECK(hvrun_shutdown(NULL) == HVRUN_OK);
    CHECK(open_descriptors() == before_init);
  }
  if (rounds >= kSettled + 2 * kWindow) CHECK(late - early < kBound);
}

/* ranks_test [ROUNDS]: it joins again so often, 100 times by default; fewer than 60 do not judge
   memory. */
int main(int argc, char** argv) {
  const int descriptors = open_descriptors();
  if (hvrun_init(NULL, NULL) != HVRUN_OK) {
    fprintf(stderr, "hvrun_init: %s\n", hvrun_last_error());
    return 1;
  }
  const int rank = hvrun_rank(NULL), size = hvrun_size(NULL);
  sums_are_right(size);
  order_does_not_matter(rank, size);
  gathering_joins_by_rank(rank, size);
  a_gather_may_read_from_inside_its_output(rank, size);
  a_gather_is_not_written_beyond_the_output(rank, size);
  everyone_has_the_roots_bytes(rank, size);
  a_mismatch_says_who_said_what(rank, size);
  a_forked_child_keeps_no_descriptor_of_ours(descriptors);
  CHECK(hvrun_barrier(NULL) == HVRUN_OK);
  CHECK(hvrun_shutdown(NULL) == HVRUN_OK);
  two_threads_join_and_leave_as_one(rank, size);
  ring_every(1000);
  it_can_begin_again(rank, size, descriptors, argc > 1 ? atoi(argv[1]) : 100);
  if (failures == 0) printf("ranks_test: rank %d of %d: all good\n", rank, size);
  return failures == 0 ? 0 : 1;
}
