// SPDX-License-Identifier: Apache-2.0
// host_init: makes the namespaces of a test host, and is its PID 1: a reaper, and nothing else.
//
//   host_init NAME stay|follow
//
// Writes the outside PID of the host's PID 1 to stdout, one line. The host ends with its PID 1; its
// PID 1 ends with this process; and this process ends, with 'follow', with the process that started
// it. That one writes a byte to stdin: whoever finds none there was left alone before it could ask
// to be told.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int fail(const char* what) {
  perror(what);
  return 1;
}

static void follow_parent(int sign_of_life) {
  char byte;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (read(sign_of_life, &byte, 1) != 1) _exit(1);
}

static int be_pid_1(int sign_of_life) {
  follow_parent(sign_of_life);
  const int null = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
  close_range(3, ~0u, 0);
  if (chdir("/") != 0) return 1;
  signal(SIGCHLD, SIG_IGN);  // the kernel reaps
  for (;;) pause();
}

int main(int argc, char** argv) {
  if (argc != 3) return fail("usage: host_init NAME stay|follow");
  if (strcmp(argv[2], "follow") == 0) follow_parent(0);
  if (unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWPID |
              CLONE_NEWCGROUP) != 0)
    return fail("unshare");
  if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return fail("make mounts private");
  if (sethostname(argv[1], strlen(argv[1])) != 0) return fail("set the host's name");
  int life[2];
  if (pipe(life) != 0) return fail("pipe");
  const pid_t child = fork();
  if (child < 0) return fail("fork");
  if (child == 0) {
    close(life[1]);
    return be_pid_1(life[0]);
  }
  if (write(life[1], "", 1) != 1) return fail("wake PID 1");
  printf("%d\n", (int)child);
  fclose(stdout);
  while (waitpid(child, NULL, 0) < 0) {
  }
  return 0;
}
