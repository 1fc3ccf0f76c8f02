/* What an initialised runtime costs while its program does nothing: prints the share of a core
 * that this rank used.
 * SPDX-License-Identifier: Apache-2.0 */
#include <hvrun/hvrun.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double read_clock(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char** argv) {
  const double idle_seconds = argc > 1 ? atof(argv[1]) : 5;
  if (hvrun_init(NULL, NULL) != HVRUN_OK || hvrun_barrier(NULL) != HVRUN_OK) {
    fprintf(stderr, "%s\n", hvrun_last_error());
    return 1;
  }
  const double cpu = read_clock(CLOCK_PROCESS_CPUTIME_ID), wall = read_clock(CLOCK_MONOTONIC);
  const struct timespec pause = {(time_t)idle_seconds, 0};
  nanosleep(&pause, NULL);
  const double used = read_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu;
  printf("%.6f\n", used / (read_clock(CLOCK_MONOTONIC) - wall));
  return hvrun_shutdown(NULL) != HVRUN_OK;
}
