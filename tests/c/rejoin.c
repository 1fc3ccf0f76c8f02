/* Joins, sums and leaves a hundred times. For ranks that another launcher has started.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include <hvrun/hvrun.h>

enum { kTimes = 100 };

int main(void) {
  for (int time = 1; time <= kTimes; ++time) {
    float one = 1;
    if (hvrun_init(NULL, NULL) != HVRUN_OK ||
        hvrun_allreduce(NULL, "one", &one, &one, 1, HVRUN_FLOAT32, HVRUN_SUM) != HVRUN_OK) {
      fprintf(stderr, "time %d: %s\n", time, hvrun_last_error());
      return 1;
    }
    if (one != (float)hvrun_size(NULL) || hvrun_shutdown(NULL) != HVRUN_OK) {
      fprintf(stderr, "time %d: the sum is %g\n", time, one);
      return 1;
    }
  }
  printf("joined %d times\n", kTimes);
  return 0;
}
