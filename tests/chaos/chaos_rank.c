/* chaos_rank DIR PROGRAM [name=value]...: a rank of a job with faults. Writes numbered lines until
 * DIR/finish is there, then a few more, and ends with 0. SPDX-License-Identifier: Apache-2.0 */
/* PROGRAM: lines     numbered lines only
 *          sum       an allreduce before each line
 *          children  two children that ignore SIGTERM, one of them in a session of its own; they
 *                    are left behind at the end
 *          catch     a handler for SIGTERM
 * length=80   bytes of a line without its newline; at least the 18 of 'RRRR NNNNNNNNNNNN '
 * pace=10     milliseconds between two lines
 * term=exit0  what 'catch' does after SIGTERM and two more lines: exit0, exit7, or go-on
 *
 * The rank appends '.' to DIR/journal.RANK for each line, once write(2) has taken it, and before it
 * ends 'd' (done, exit code 0), 't' (ended by its SIGTERM handler) or 'e' (an operation failed). */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <hvrun/hvrun.h>

#include "tests/payload/numbered_lines.h"

enum { kCount = 1024, kLastLines = 5, kLinesAfterTerm = 2 };

static volatile sig_atomic_t term_came;
static int journal;
static float ones[kCount], sums[kCount];

static void note_term(int number) {
  (void)number;
  term_came = 1;
}

static void write_whole(int fd, const char* bytes, size_t length) {
  if (!write_all(fd, bytes, length)) exit(8);
}

static void write_line(int rank, unsigned long number, size_t length) {
  static char line[1 << 16];
  fill_line(line, length, rank, number);
  line[length] = '\n';
  write_whole(STDOUT_FILENO, line, length + 1);
  write_whole(journal, ".", 1);
}

static void make_children(void) {
  for (int i = 0; i < 2; ++i) {
    if (fork() != 0) continue;
    if (i == 1) setsid();
    signal(SIGTERM, SIG_IGN);
    close(journal);
    for (;;) pause();
  }
}

static void end(const char* how, int code) {
  write_whole(journal, how, 1);
  exit(code);
}

/* Every rank gives whether it has seen the file; true on all of them in the same step. */
static int sum_up(int has_seen_finish) {
  for (int i = 0; i < kCount; ++i) ones[i] = 1.0f;
  ones[0] = (float)has_seen_finish;
  if (hvrun_allreduce(NULL, "sums", ones, sums, kCount, HVRUN_FLOAT32, HVRUN_SUM) != HVRUN_OK) {
    fprintf(stderr, "chaos_rank: %s\n", hvrun_last_error());
    hvrun_shutdown(NULL);
    end("e", 1);
  }
  if (sums[kCount - 1] != (float)hvrun_size(NULL)) {
    fprintf(stderr, "chaos_rank: wrong sum %g of %d ranks\n", (double)sums[kCount - 1],
            hvrun_size(NULL));
    end("e", 9);
  }
  return sums[0] > 0;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const char* const program = argv[2];
  const int is_summing = strcmp(program, "sum") == 0;
  const int rank = atoi(getenv("HVRUN_RANK") ? getenv("HVRUN_RANK") : "0");
  const long pace_ms = atol(option(argv + 3, "pace", "10"));
  size_t length = strtoul(option(argv + 3, "length", "80"), NULL, 10);
  if (length < kHead) length = kHead;
  if (length > 60000) length = 60000;
  const char* const term = option(argv + 3, "term", "exit0");

  char path[4096], finish[4096];
  snprintf(path, sizeof path, "%s/journal.%d", argv[1], rank);
  snprintf(finish, sizeof finish, "%s/finish", argv[1]);
  journal = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (journal < 0) {
    perror(path);
    return 9;
  }
  if (strcmp(program, "catch") == 0) {
    struct sigaction action = {.sa_handler = note_term};
    sigaction(SIGTERM, &action, NULL);
  }
  if (strcmp(program, "children") == 0) make_children();
  if (is_summing && hvrun_init(NULL, NULL) != HVRUN_OK) {
    fprintf(stderr, "chaos_rank: hvrun_init: %s\n", hvrun_last_error());
    end("e", 1);
  }
  int left = -1, after_term = 0; /* lines to go, once the end has begun */
  for (unsigned long number = 0; left != 0; ++number) {
    int is_ending = access(finish, F_OK) == 0;
    if (is_summing) is_ending = sum_up(is_ending);
    if (left < 0 && is_ending) left = kLastLines;
    write_line(rank, number, length);
    if (left > 0) --left;
    if (term_came && strcmp(term, "go-on") != 0 && ++after_term > kLinesAfterTerm)
      end("t", strcmp(term, "exit7") == 0 ? 7 : 0);
    nanosleep(&(struct timespec){.tv_sec = pace_ms / 1000, .tv_nsec = pace_ms % 1000 * 1000000},
              NULL); /* sleep-ok: the pace of a rank that works */
  }
  if (is_summing && hvrun_shutdown(NULL) != HVRUN_OK) end("e", 1);
  end("d", 0);
}
