// SPDX-License-Identifier: Apache-2.0
// big_resident LIST MIB: holds so much memory, in small pages, that its end takes time; signs LIST
// as 'resident'.
#include "resident.h"
#include "roll_call.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  hold_memory(strtoul(argv[2], NULL, 10));
  sign_roll_call(argv[1], "resident");
  for (;;) pause();
}
