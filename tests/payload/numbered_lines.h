// What programs that write numbered lines share: their name=value words, the lines, and whole
// writes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { kHead = 18 };  // bytes of 'RRRR NNNNNNNNNNNN ', the zero-padded rank and number

// The value of the word name=value. words: ends with NULL, as argv does.
static inline const char* option(char** words, const char* name, const char* fallback) {
  const size_t length = strlen(name);
  for (; *words; ++words)
    if (strncmp(*words, name, length) == 0 && (*words)[length] == '=') return *words + length + 1;
  return fallback;
}

// length: of the line without an end, at least kHead. Behind them stand letters that the number
// decides.
static inline void fill_line(char* line, size_t length, int rank, unsigned long number) {
  char head[64];
  snprintf(head, sizeof head, "%04d %012lu ", rank, number);
  memcpy(line, head, kHead);
  memset(line + kHead, 'a' + (int)(number % 26), length - kHead);
}

// False: the system took less.
static inline bool write_all(int fd, const char* bytes, size_t length) {
  while (length > 0) {
    const ssize_t written = write(fd, bytes, length);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    length -= (size_t)written;
  }
  return true;
}
