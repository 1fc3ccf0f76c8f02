// The list of PIDs that payload processes write themselves, so that a test can count from outside
// who still runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Clock ticks from boot to this process's start: field 22 of its stat line, counted behind the
// name's ')'.
static inline long long roll_call_start(void) {
  char text[1024] = "";
  const int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  const ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  if (length <= 0) abort();
  char* at = strrchr(text, ')');
  for (int field = 2; field < 22; ++field) at = strchr(at + 1, ' ');
  return atoll(at + 1);
}

// Appends 'host pid start role' in one write: whole lines, however many processes sign at once.
static inline void sign_roll_call(const char* list, const char* role) {
  char host[256], line[512];
  if (gethostname(host, sizeof host) != 0) abort();
  const int length =
      snprintf(line, sizeof line, "%s %d %lld %s\n", host, (int)getpid(), roll_call_start(), role);
  const int fd = open(list, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0 || write(fd, line, (size_t)length) != length) {
    perror(list);
    exit(9);
  }
  close(fd);
}
