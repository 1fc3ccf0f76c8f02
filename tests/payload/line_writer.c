// SPDX-License-Identifier: Apache-2.0
// line_writer [name=value]...: numbered lines that show whether any was lost, torn or moved.
//
//   lines=10        how many
//   length=80       bytes of each, without its end; at least the 18 of 'RRRR NNNNNNNNNNNN ',
//   zero-padded rank and number to=stdout       stdout, stderr, or both (each line on both) write=0
//   bytes of each write(2); 0: one write a line ending=lf       lf, crlf, or cr (an update on a
//   terminal) last=whole      whole, or bare: the last line without its end exit=0          the
//   code at the end
//
// The line behind its 18 bytes is filled with letters that its number decides.
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kHead = 18 };

struct Stream {
  int fd;
  size_t piece;  // bytes of each write; 0: as they come
  size_t held;
  char* buffer;
};

static const char* option(int argc, char** argv, const char* name, const char* fallback) {
  const size_t length = strlen(name);
  for (int i = 1; i < argc; ++i) {
    if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=') return argv[i] + length + 1;
  }
  return fallback;
}

static void write_all(int fd, const char* bytes, size_t length) {
  while (length > 0) {
    const ssize_t written = write(fd, bytes, length);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) exit(9);
    bytes += written;
    length -= (size_t)written;
  }
}

static void put(struct Stream* stream, const char* bytes, size_t length) {
  if (stream->piece == 0) {
    write_all(stream->fd, bytes, length);
    return;
  }
  while (length > 0) {
    const size_t room = stream->piece - stream->held;
    const size_t part = length < room ? length : room;
    memcpy(stream->buffer + stream->held, bytes, part);
    stream->held += part;
    bytes += part;
    length -= part;
    if (stream->held == stream->piece) {
      write_all(stream->fd, stream->buffer, stream->held);
      stream->held = 0;
    }
  }
}

static struct Stream open_stream(int fd, size_t piece) {
  return (struct Stream){fd, piece, 0, malloc(piece ? piece : 1)};
}

int main(int argc, char** argv) {
  const unsigned long lines = strtoul(option(argc, argv, "lines", "10"), NULL, 10);
  size_t length = strtoul(option(argc, argv, "length", "80"), NULL, 10);
  if (length < kHead) length = kHead;
  const size_t piece = strtoul(option(argc, argv, "write", "0"), NULL, 10);
  const char* const to = option(argc, argv, "to", "stdout");
  const char* const ending_name = option(argc, argv, "ending", "lf");
  const char* const ending = strcmp(ending_name, "cr") == 0     ? "\r"
                             : strcmp(ending_name, "crlf") == 0 ? "\r\n"
                                                                : "\n";
  const bool bare_last = strcmp(option(argc, argv, "last", "whole"), "bare") == 0;
  const char* const rank = getenv("HVRUN_RANK") ? getenv("HVRUN_RANK") : "0";

  struct Stream streams[2];
  int count = 0;
  if (strcmp(to, "stderr") != 0) streams[count++] = open_stream(STDOUT_FILENO, piece);
  if (strcmp(to, "stdout") != 0) streams[count++] = open_stream(STDERR_FILENO, piece);
  char* const line = malloc(length + 3);
  for (unsigned long number = 0; number < lines; ++number) {
    char head[64];
    snprintf(head, sizeof head, "%04d %012lu ", atoi(rank), number);
    memcpy(line, head, kHead);
    memset(line + kHead, 'a' + (int)(number % 26), length - kHead);
    size_t whole = length;
    if (!bare_last || number + 1 < lines) {
      memcpy(line + length, ending, strlen(ending));
      whole += strlen(ending);
    }
    for (int i = 0; i < count; ++i) put(&streams[i], line, whole);
  }
  for (int i = 0; i < count; ++i) write_all(streams[i].fd, streams[i].buffer, streams[i].held);
  return atoi(option(argc, argv, "exit", "0"));
}
