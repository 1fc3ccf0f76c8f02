// SPDX-License-Identifier: Apache-2.0
// orphan_maker LIST KIND...: leaves processes behind that are hard to end; each signs LIST with its
// kind as role.
//
//   plain            a child
//   session          a child in a session of its own
//   stubborn         a child that ignores SIGTERM, SIGHUP, SIGINT, SIGQUIT and blocks all other
//   signals daemon           forked twice, own session, descriptors closed, working directory /
//   stubborn-daemon  both
//   nameless         a stubborn daemon executed anew with an empty environment
//   runner           forks every 20 ms and leaves life to its child; every generation signs
//   self             the rank itself becomes stubborn
//   exit=CODE        the rank ends with that code once its children have been made (else it waits
//   for its end)
//
// The rank signs as 'rank'.
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>

#include "roll_call.h"

static void wait_for_the_end(void) {
  for (;;) pause();
}

static void become_stubborn(void) {
  const int ignored[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT};
  for (size_t i = 0; i < sizeof ignored / sizeof *ignored; ++i) signal(ignored[i], SIG_IGN);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
}

// The caller goes on in the daemon; its parent's copy never returns.
static void become_daemon(void) {
  setsid();
  if (fork() != 0) _exit(0);
  if (chdir("/") != 0) _exit(9);
  for (int fd = 0; fd < 3; ++fd) close(fd);
  open("/dev/null", O_RDWR);
  if (dup(0) < 0 || dup(0) < 0) _exit(9);
}

static void run_away(const char* list) {
  for (;;) {
    sign_roll_call(list, "runner");
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);  // sleep-ok: the pace of the flight
    if (fork() != 0) _exit(0);
  }
}

static void be(const char* kind, const char* list, const char* program) {
  const bool nameless = strcmp(kind, "nameless") == 0;
  if (strcmp(kind, "session") == 0) setsid();
  if (strstr(kind, "daemon") || nameless || strcmp(kind, "runner") == 0) become_daemon();
  if (strstr(kind, "stubborn") || nameless) become_stubborn();
  if (strcmp(kind, "runner") == 0) run_away(list);
  if (nameless) {
    execle(program, "orphan", list, "as-nameless", (char*)NULL, (char*[]){NULL});
    _exit(9);
  }
  sign_roll_call(list, kind);
  wait_for_the_end();
}

static bool is_known(const char* kind) {
  const char* const kinds[] = {"plain",           "session",  "stubborn", "daemon",
                               "stubborn-daemon", "nameless", "runner"};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    if (strcmp(kind, kinds[i]) == 0) return true;
  }
  return false;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const char* const list = argv[1];
  if (argc == 3 && strcmp(argv[2], "as-nameless") == 0) {
    sign_roll_call(list, "nameless");
    wait_for_the_end();
  }
  int code = -1;
  for (int i = 2; i < argc; ++i) {
    if (strcmp(argv[i], "self") == 0) {
      become_stubborn();
    } else if (sscanf(argv[i], "exit=%d", &code) == 1) {
      continue;
    } else if (!is_known(argv[i])) {
      fprintf(stderr, "orphan_maker: no kind '%s'\n", argv[i]);
      return 2;
    } else if (fork() == 0) {
      be(argv[i], list, "/proc/self/exe");
    }
  }
  sign_roll_call(list, "rank");
  if (code >= 0) return code;
  wait_for_the_end();
}
