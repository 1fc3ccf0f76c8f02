// SPDX-License-Identifier: Apache-2.0
// fd_lister: prints 'descriptor target' for each descriptor that it was born with, ascending.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int ascending(const void* left, const void* right) {
  return *(const int*)left - *(const int*)right;
}

int main(void) {
  int found[4096], count = 0;
  DIR* folder = opendir("/proc/self/fd");
  if (!folder) return 9;
  for (struct dirent* entry; (entry = readdir(folder)) && count < 4096;) {
    const int fd = atoi(entry->d_name);
    if (entry->d_name[0] != '.' && fd != dirfd(folder)) found[count++] = fd;
  }
  qsort(found, (size_t)count, sizeof *found, ascending);
  for (int i = 0; i < count; ++i) {
    char path[64], target[4096];
    snprintf(path, sizeof path, "/proc/self/fd/%d", found[i]);
    const ssize_t length = readlink(path, target, sizeof target - 1);
    printf("%d %.*s\n", found[i], (int)(length < 0 ? 0 : length), target);
  }
  return 0;
}
