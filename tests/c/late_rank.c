/* Rank 0 has its tensor only when something has come on its standard input; hvrun -np 2 late_rank.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/c/check.h"

int main(void) {
  float value = 1;
  char byte;
  CHECK(hvrun_init(NULL, NULL) == HVRUN_OK);
  if (hvrun_rank(NULL) == 0) CHECK(read(STDIN_FILENO, &byte, 1) == 1);
  CHECK(hvrun_allreduce(NULL, "late", &value, &value, 1, HVRUN_FLOAT32, HVRUN_SUM) == HVRUN_OK);
  CHECK(hvrun_shutdown(NULL) == HVRUN_OK);
  return failures == 0 ? 0 : 1;
}
