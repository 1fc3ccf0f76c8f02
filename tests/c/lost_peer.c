/* Sums for ever, deaf to SIGTERM; tells now and then that it does, and when and how the loss of a
 * peer ended that. For tests of real hosts (tests/cluster). SPDX-License-Identifier: Apache-2.0 */
/* With "fork" or "clone" idle children live beside it, which inherit whatever they inherit; with
 * "fail" the loss is its own failure, too; with "leave" that is so, and rank 1 is done early and
 * ends with 0, without a goodbye; with "grow" rank 1 takes more and more memory. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <hvrun/hvrun.h>

enum { kCount = 1 << 18, kRoundsBetweenWords = 50 };

static float data[kCount];

static hvrun_status sum(const char* name) {
  return hvrun_allreduce(NULL, name, data, data, kCount, HVRUN_FLOAT32, HVRUN_MAX);
}

/* On the clock that all processes of the machine share. */
static void tell(const char* what, hvrun_status status) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  printf("%s status %d at %lld.%09ld: %s\n", what, (int)status, (long long)now.tv_sec, now.tv_nsec,
         hvrun_last_error());
  fflush(stdout);
}

/* As a data loader's workers: alive, and doing nothing. */
static void make_children(const char* how) {
  for (int i = 0; i < 3; ++i) {
    const long child = strcmp(how, "clone") == 0 ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
    if (child != 0) continue;
    for (;;) pause();
  }
}

/* Until the system ends it. */
static void grow(void) {
  enum { kBytes = 1 << 20 };
  static char* volatile last; /* whose bytes anybody may read, as far as the compiler knows */
  last = malloc(kBytes);
  tell("grown", HVRUN_OK);
  if (last) memset(last, 1, kBytes);
}

int main(int argc, char** argv) {
  signal(SIGTERM, SIG_IGN);
  if (hvrun_init(NULL, NULL) != HVRUN_OK) {
    fprintf(stderr, "hvrun_init: %s\n", hvrun_last_error());
    return 1;
  }
  const char* how = argc > 1 ? argv[1] : "";
  const int fails = strcmp(how, "fail") == 0;
  const int grows = strcmp(how, "grow") == 0;
  const int leaves = strcmp(how, "leave") == 0;
  if (*how && !fails && !grows && !leaves) make_children(how);
  hvrun_status status = HVRUN_OK;
  for (int round = 0; status == HVRUN_OK; ++round) {
    if (round % kRoundsBetweenWords == 10) tell("ready", status);
    if (grows && hvrun_rank(NULL) == 1) grow();
    if (leaves && round == 1 && hvrun_rank(NULL) == 1) return 0; /* and no goodbye */
    status = sum("pending");
  }
  tell("pending", status);
  tell("later", sum("later"));
  if (leaves) return 1; /* without a goodbye, as after an error that nobody handles */
  return hvrun_shutdown(NULL) == HVRUN_OK && !fails ? 0 : 1;
}
