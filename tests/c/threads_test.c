/* Threads and forked children of a program: any thread joins, enqueues, waits and leaves; children
 * live on, end and call as they like. Run by hvrun. SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/c/check.h"

/* What a child has of its parent's threads, which are not there, is no leak; and its exit need not
 * wait for a second, as the thread sanitizer's does. */
SANITIZER_OPTIONS("detect_leaks=0:atexit_sleep_ms=0")

enum { kThreads = 4, kRounds = 50, kChildren = 20 };

static void* join_the_job(void* status) {
  *(hvrun_status*)status = hvrun_init(NULL, NULL);
  return NULL;
}

static void* leave_the_job(void* status) {
  *(hvrun_status*)status = hvrun_shutdown(NULL);
  return NULL;
}

static hvrun_status in_a_thread(void* (*call)(void*)) {
  pthread_t thread;
  hvrun_status status = HVRUN_ERROR_SYSTEM;
  CHECK(!pthread_create(&thread, NULL, call, &status) && !pthread_join(thread, NULL));
  return status;
}

static int count_threads(void) {
  DIR* const tasks = opendir("/proc/self/task");
  int count = 0;
  CHECK(tasks != NULL);
  if (tasks == NULL) return 0;
  for (const struct dirent* task = readdir(tasks); task != NULL; task = readdir(tasks))
    count += task->d_name[0] != '.';
  closedir(tasks);
  return count;
}

/* A joined thread may stand there a moment longer. */
static void expect_threads(int expected) {
  const time_t deadline = time(NULL) + 10;
  while (count_threads() != expected && time(NULL) < deadline) sched_yield();
  const int count = count_threads();
  if (count != expected) fprintf(stderr, "%d threads, not %d\n", count, expected);
  CHECK(count == expected);
}

/* One that drives while nobody waits, and one that listens to other ranks where there are any; a
 * timeline has one more. */
static void each_context_has_two_threads(void) {
  hvrun_context* context = NULL;
  CHECK(in_a_thread(leave_the_job) == HVRUN_OK); /* a sanitizer's own comes with the first thread */
  const int before = count_threads();
  CHECK(hvrun_init(NULL, NULL) == HVRUN_OK);
  const int own = hvrun_size(NULL) == 1 ? 1 : 2;
  expect_threads(before + own);
  CHECK(hvrun_barrier(NULL) == HVRUN_OK);
  expect_threads(before + own);
  CHECK(hvrun_timeline_start(NULL, "/dev/null") == HVRUN_OK); /* without %r rank 0 alone writes */
  expect_threads(before + own + (hvrun_rank(NULL) == 0));
  CHECK(hvrun_timeline_stop(NULL) == HVRUN_OK);
  CHECK(hvrun_init(NULL, &context) == HVRUN_OK);
  expect_threads(before + 2 * own);
  CHECK(hvrun_shutdown(context) == HVRUN_OK);
  expect_threads(before + own);
  CHECK(hvrun_barrier(NULL) == HVRUN_OK);
  CHECK(hvrun_shutdown(NULL) == HVRUN_OK);
  expect_threads(before);
}

/* A thread has tensors of its own, several in flight. */
static void* sum_on(void* number) {
  const int64_t count = 1000;
  float data[2][1000];
  hvrun_handle handles[2];
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < 2; ++i) {
      char name[32];
      snprintf(name, sizeof name, "thread %d, %d", *(int*)number, i);
      for (int j = 0; j < count; ++j) data[i][j] = (float)(i + 1);
      hvrun_request request = sum_of(name, &count, 1, data[i], data[i]);
      CHECK(hvrun_enqueue(NULL, &request, &handles[i]) == HVRUN_OK);
    }
    for (int i = 1; i >= 0; --i) {
      CHECK(hvrun_wait(NULL, handles[i], -1, NULL) == HVRUN_OK);
      CHECK(data[i][999] == (float)((i + 1) * hvrun_size(NULL)));
      CHECK(hvrun_release(NULL, handles[i]) == HVRUN_OK);
    }
  }
  return NULL;
}

static void threads_enqueue_and_wait_at_once(void) {
  pthread_t threads[kThreads];
  int numbers[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    numbers[i] = i;
    CHECK(!pthread_create(&threads[i], NULL, sum_on, &numbers[i]));
  }
  for (int i = 0; i < kThreads; ++i) CHECK(!pthread_join(threads[i], NULL));
}

/* One thread waits for what another has enqueued, and several for one. */
static void* wait_for_it(void* handle) {
  CHECK(hvrun_wait(NULL, *(hvrun_handle*)handle, -1, NULL) == HVRUN_OK);
  return NULL;
}

static void threads_wait_for_one_handle(void) {
  const int64_t count = 1;
  float value = 1;
  hvrun_handle handle;
  pthread_t threads[kThreads];
  hvrun_request request = sum_of("for all threads", &count, 1, &value, &value);
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_OK);
  for (int i = 0; i < kThreads; ++i)
    CHECK(!pthread_create(&threads[i], NULL, wait_for_it, &handle));
  for (int i = 0; i < kThreads; ++i) CHECK(!pthread_join(threads[i], NULL));
  CHECK(value == (float)hvrun_size(NULL) && hvrun_release(NULL, handle) == HVRUN_OK);
}

/* In a child: every function that takes a context. */
static int all_functions_refuse(void) {
  const int64_t count = 1;
  float value = 1;
  int32_t number = 0, of_all = 0;
  uint32_t set = 0;
  hvrun_handle handle = 1;
  hvrun_context* made = NULL;
  hvrun_result result = HVRUN_RESULT_INIT;
  hvrun_counters counters = HVRUN_COUNTERS_INIT;
  hvrun_request request = sum_of("child's", &count, 1, &value, &value);
  const hvrun_status refused = HVRUN_ERROR_CONTRACT;
  return hvrun_init(NULL, NULL) == refused && hvrun_init(NULL, &made) == refused &&
         hvrun_enqueue(NULL, &request, &handle) == refused && handle == HVRUN_NO_HANDLE &&
         hvrun_poll(NULL, 1) == refused && hvrun_wait(NULL, 1, -1, &result) == refused &&
         hvrun_release(NULL, 1) == refused && hvrun_barrier(NULL) == refused &&
         hvrun_allreduce(NULL, "x", &value, &value, 1, HVRUN_FLOAT32, HVRUN_SUM) == refused &&
         hvrun_broadcast(NULL, "x", &value, 1, HVRUN_FLOAT32, 0) == refused &&
         hvrun_join(NULL, &number) == refused &&
         hvrun_process_set_add(NULL, &number, 1, &set) == refused &&
         hvrun_process_set_remove(NULL, 1) == refused &&
         hvrun_process_set_list(NULL, &set, 1, &of_all) == refused &&
         hvrun_process_set_ranks(NULL, 0, &number, 1, &of_all) == refused &&
         hvrun_counters_read(NULL, &counters) == refused &&
         hvrun_timeline_start(NULL, "/dev/null") == refused &&
         hvrun_timeline_stop(NULL) == refused && hvrun_shutdown(NULL) == refused &&
         strstr(hvrun_last_error(), "forked from a rank") && hvrun_rank(NULL) == -1 &&
         hvrun_size(NULL) == -1 && hvrun_local_rank(NULL) == -1 && hvrun_local_size(NULL) == -1 &&
         hvrun_cross_rank(NULL) == -1 && hvrun_cross_size(NULL) == -1 &&
         hvrun_type_size(HVRUN_FLOAT32) == 4;
}

static int is_well(pid_t child) {
  int state = 0;
  return waitpid(child, &state, 0) == child && WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

/* While other threads are inside the library, whatever they have locked. Half of the children run
 * the handlers of exit(). */
static void children_are_refused_at_once_and_end_as_they_like(void) {
  pthread_t thread;
  int number = kThreads;
  CHECK(!pthread_create(&thread, NULL, sum_on, &number));
  for (int i = 0; i < kChildren; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const int code = all_functions_refuse() ? 0 : 1;
      if (i % 2 == 0) _exit(code);
      exit(code);
    }
    CHECK(is_well(child));
  }
  CHECK(!pthread_join(thread, NULL));
}

/* A worker that nobody ends: the rank leaves, joins again and ends without it. */
static pid_t child_that_lives_on(void) {
  const pid_t child = fork();
  if (child != 0) return child;
  for (;;) pause();
}

static void nothing_works_without_a_context(void) {
  const int64_t count = 1;
  float value = 1;
  hvrun_handle handle = 1;
  hvrun_request request = sum_of("late", &count, 1, &value, &value);
  CHECK(hvrun_shutdown(NULL) == HVRUN_OK);
  CHECK(hvrun_enqueue(NULL, &request, &handle) == HVRUN_ERROR_SHUTDOWN);
  CHECK(handle == HVRUN_NO_HANDLE);
  CHECK(hvrun_barrier(NULL) == HVRUN_ERROR_SHUTDOWN);
  CHECK(hvrun_join(NULL, NULL) == HVRUN_ERROR_SHUTDOWN);
  CHECK(hvrun_rank(NULL) == -1 && hvrun_cross_size(NULL) == -1);
}

int main(void) {
  nothing_works_without_a_context();
  each_context_has_two_threads();
  CHECK(in_a_thread(join_the_job) == HVRUN_OK); /* which has ended before the next line */
  const int rank = hvrun_rank(NULL);
  CHECK(hvrun_init(NULL, NULL) == HVRUN_OK); /* twice: nothing more happens */
  CHECK(hvrun_rank(NULL) == rank);
  const pid_t child = child_that_lives_on();
  threads_enqueue_and_wait_at_once();
  threads_wait_for_one_handle();
  children_are_refused_at_once_and_end_as_they_like();
  CHECK(hvrun_barrier(NULL) == HVRUN_OK);
  CHECK(in_a_thread(leave_the_job) == HVRUN_OK);
  nothing_works_without_a_context();
  CHECK(hvrun_init(NULL, NULL) == HVRUN_OK && hvrun_rank(NULL) == rank);
  CHECK(hvrun_barrier(NULL) == HVRUN_OK);
  CHECK(hvrun_shutdown(NULL) == HVRUN_OK);
  CHECK(waitpid(child, NULL, WNOHANG) == 0 && kill(child, SIGKILL) == 0);
  if (failures == 0) printf("threads_test: rank %d: all good\n", rank);
  return failures == 0 ? 0 : 1;
}
