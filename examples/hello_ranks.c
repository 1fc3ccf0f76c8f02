/* The smallest program that uses hvrun: every rank contributes its number, every rank gets the sum.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   cc hello_ranks.c -o hello_ranks $(pkg-config --cflags --libs hvrun) \
 *     -Wl,-rpath,$(pkg-config --variable=libdir hvrun)
 *   hvrun -np 4 ./hello_ranks
 */
#include <hvrun/hvrun.h>
#include <stdio.h>

int main(void) {
  if (hvrun_init(NULL, NULL) != HVRUN_OK) {
    fprintf(stderr, "hello_ranks: %s\n", hvrun_last_error());
    return 1;
  }
  const int rank = hvrun_rank(NULL);
  int64_t sum = rank;
  if (hvrun_allreduce(NULL, "sum of ranks", &sum, &sum, 1, HVRUN_INT64, HVRUN_SUM) != HVRUN_OK) {
    fprintf(stderr, "hello_ranks: rank %d: %s\n", rank, hvrun_last_error());
    return 1;
  }
  printf("I am rank %d of %d; all our numbers add up to %lld\n", rank, hvrun_size(NULL),
         (long long)sum);
  return hvrun_shutdown(NULL) == HVRUN_OK ? 0 : 1;
}
