/* Sums for ever, deaf to SIGTERM; tells now and then that it does, and when and how the loss of a
 * peer ended that. For tests of real hosts (tests/cluster). SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <time.h>

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

int main(void) {
  signal(SIGTERM, SIG_IGN);
  if (hvrun_init(NULL, NULL) != HVRUN_OK) {
    fprintf(stderr, "hvrun_init: %s\n", hvrun_last_error());
    return 1;
  }
  hvrun_status status = HVRUN_OK;
  for (int round = 0; status == HVRUN_OK; ++round) {
    if (round % kRoundsBetweenWords == 10) tell("ready", status);
    status = sum("pending");
  }
  tell("pending", status);
  tell("later", sum("later"));
  return hvrun_shutdown(NULL) == HVRUN_OK ? 0 : 1;
}
