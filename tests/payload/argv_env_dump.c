// SPDX-License-Identifier: Apache-2.0
// argv_env_dump ...: writes what it was born with, byte for byte, to
// DUMP_DIR/rank.N.{argv,environ,cwd}; a zero ends each entry. N is HVRUN_RANK, or 0.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char** environ;

static FILE* open_dump(const char* what) {
  const char* folder = getenv("DUMP_DIR");
  const char* rank = getenv("HVRUN_RANK");
  char path[4096];
  snprintf(path, sizeof path, "%s/rank.%s.%s", folder ? folder : ".", rank ? rank : "0", what);
  FILE* file = fopen(path, "wb");
  if (!file) {
    perror(path);
    exit(9);
  }
  return file;
}

static void dump(const char* what, char* const* entries) {
  FILE* file = open_dump(what);
  for (; *entries; ++entries) fwrite(*entries, 1, strlen(*entries) + 1, file);
  if (fclose(file) != 0) exit(9);
}

int main(int argc, char** argv) {
  (void)argc;
  char folder[65536];
  dump("argv", argv);
  dump("environ", environ);
  dump("cwd", (char*[]){getcwd(folder, sizeof folder), NULL});
  return 0;
}
