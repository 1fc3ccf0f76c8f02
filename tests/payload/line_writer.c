/* line_writer [name=value]...: numbered lines that show whether any was lost, torn or moved.
 * SPDX-License-Identifier: Apache-2.0 */
/* lines=10    how many
 * length=80   bytes of each, without its end; at least the 18 of 'RRRR NNNNNNNNNNNN '
 * to=stdout   stdout, stderr, or both (each line on both)
 * write=0     bytes of each write(2); 0: one write a line
 * ending=lf   lf, crlf, or cr (an update on a terminal)
 * last=whole  whole, or bare: the last line without its end
 * exit=0      the code at the end */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "numbered_lines.h"

struct Stream {
  int fd;
  size_t piece;  // bytes of each write; 0: as they come
  size_t held;
  char* buffer;
};

static void write_whole(int fd, const char* bytes, size_t length) {
  if (!write_all(fd, bytes, length)) exit(9);
}

static void put(struct Stream* stream, const char* bytes, size_t length) {
  if (stream->piece == 0) {
    write_whole(stream->fd, bytes, length);
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
      write_whole(stream->fd, stream->buffer, stream->held);
      stream->held = 0;
    }
  }
}

static struct Stream open_stream(int fd, size_t piece) {
  return (struct Stream){fd, piece, 0, malloc(piece ? piece : 1)};
}

int main(int argc, char** argv) {
  (void)argc;
  const unsigned long lines = strtoul(option(argv + 1, "lines", "10"), NULL, 10);
  size_t length = strtoul(option(argv + 1, "length", "80"), NULL, 10);
  if (length < kHead) length = kHead;
  const size_t piece = strtoul(option(argv + 1, "write", "0"), NULL, 10);
  const char* const to = option(argv + 1, "to", "stdout");
  const char* const ending_name = option(argv + 1, "ending", "lf");
  const char* const ending = strcmp(ending_name, "cr") == 0     ? "\r"
                             : strcmp(ending_name, "crlf") == 0 ? "\r\n"
                                                                : "\n";
  const bool bare_last = strcmp(option(argv + 1, "last", "whole"), "bare") == 0;
  const char* const rank = getenv("HVRUN_RANK") ? getenv("HVRUN_RANK") : "0";

  struct Stream streams[2];
  int count = 0;
  if (strcmp(to, "stderr") != 0) streams[count++] = open_stream(STDOUT_FILENO, piece);
  if (strcmp(to, "stdout") != 0) streams[count++] = open_stream(STDERR_FILENO, piece);
  char* const line = malloc(length + 3);
  for (unsigned long number = 0; number < lines; ++number) {
    fill_line(line, length, atoi(rank), number);
    size_t whole = length;
    if (!bare_last || number + 1 < lines) {
      memcpy(line + length, ending, strlen(ending));
      whole += strlen(ending);
    }
    for (int i = 0; i < count; ++i) put(&streams[i], line, whole);
  }
  for (int i = 0; i < count; ++i) write_whole(streams[i].fd, streams[i].buffer, streams[i].held);
  return atoi(option(argv + 1, "exit", "0"));
}
