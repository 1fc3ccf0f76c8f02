// SPDX-License-Identifier: Apache-2.0
// tcp_peers LIST VICTIM MODE [MIB]: ranks joined by plain sockets, each with each; then rank VICTIM
// dies.
//
// They meet by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. The victim holds MIB of memory, so
// that its end takes time. Once all are joined every rank signs LIST ('victim', 'survivor'), and
// MODE says what happens:
//
//   eof   the victim kills itself with SIGKILL; a survivor exits 1 when a peer's socket ends
//   told  a child of the victim's kills it, then tells every survivor, and each exits 1 at that
//         instant; the victim itself could be put off between telling and dying
//   wait  the victim waits to be killed from outside; a survivor exits 1 when a peer's socket ends
//
// Meeting: every rank but 0 dials rank 0 and sends the port that it listens on; rank 0 sends all
// addresses to all; then each rank dials the lower ones.
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "resident.h"
#include "roll_call.h"

enum { kMostRanks = 256, kJoined = 'j', kDying = 'd' };

struct Place {
  struct sockaddr_in address;
};

static int rank, size;
static int peers[kMostRanks];  // sockets, by rank

static void fail(const char* what) {
  fprintf(stderr, "tcp_peers: rank %d: ", rank);
  perror(what);
  exit(9);
}

static const char* need(const char* name) {
  const char* value = getenv(name);
  if (value) return value;
  fprintf(stderr, "tcp_peers: %s is not set\n", name);
  exit(9);
}

static int new_socket(void) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) fail("socket");
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

static int listen_on(uint16_t port) {
  const int fd = new_socket();
  const struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(port)};
  if (bind(fd, (const struct sockaddr*)&any, sizeof any) != 0) fail("bind");
  if (listen(fd, kMostRanks) != 0) fail("listen");
  return fd;
}

// Tries until the other side listens, without a limit: the test has one.
static int dial(struct sockaddr_in address) {
  for (;;) {
    const int fd = new_socket();
    if (connect(fd, (const struct sockaddr*)&address, sizeof address) == 0) return fd;
    close(fd);
    nanosleep(&(struct timespec){.tv_nsec = 10000000},
              NULL);  // sleep-ok: rank 0 may not listen yet
  }
}

static void send_all(int fd, const void* bytes, size_t length) {
  if (send(fd, bytes, length, MSG_NOSIGNAL) != (ssize_t)length) fail("send");
}

static void receive(int fd, void* bytes, size_t length) {
  if (recv(fd, bytes, length, MSG_WAITALL) != (ssize_t)length) fail("receive");
}

static int accept_peer(int listener) {
  const int fd = accept(listener, NULL, NULL);
  if (fd < 0) fail("accept");
  int32_t from;
  receive(fd, &from, sizeof from);
  if (from < 0 || from >= size) fail("a stranger called");
  peers[from] = fd;
  return from;
}

static struct sockaddr_in master(void) {
  const struct addrinfo wanted = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
  struct addrinfo* found = NULL;
  if (getaddrinfo(need("MASTER_ADDR"), need("MASTER_PORT"), &wanted, &found) != 0)
    fail(need("MASTER_ADDR"));
  struct sockaddr_in address;
  memcpy(&address, found->ai_addr, sizeof address);
  freeaddrinfo(found);
  return address;
}

static void call(int other, struct sockaddr_in address) {
  const int32_t own = rank;
  peers[other] = dial(address);
  send_all(peers[other], &own, sizeof own);
}

static void meet_as_first(struct Place* places) {
  const int listener = listen_on((uint16_t)atoi(need("MASTER_PORT")));
  for (int i = 1; i < size; ++i) {
    const int from = accept_peer(listener);
    socklen_t length = sizeof places[from].address;
    getpeername(peers[from], (struct sockaddr*)&places[from].address, &length);
    receive(peers[from], &places[from].address.sin_port, sizeof(in_port_t));
  }
  for (int other = 1; other < size; ++other)
    send_all(peers[other], places, sizeof *places * kMostRanks);
  close(listener);
}

static void meet_as_other(struct Place* places) {
  struct sockaddr_in own;
  socklen_t length = sizeof own;
  const int listener = listen_on(0);
  getsockname(listener, (struct sockaddr*)&own, &length);
  call(0, master());
  send_all(peers[0], &own.sin_port, sizeof own.sin_port);
  receive(peers[0], places, sizeof *places * kMostRanks);
  for (int lower = 1; lower < rank; ++lower) call(lower, places[lower].address);
  for (int higher = rank + 1; higher < size; ++higher) accept_peer(listener);
  close(listener);
}

// Everybody has met everybody once each has heard so from each.
static void join(void) {
  static struct Place places[kMostRanks];
  if (rank == 0) {
    meet_as_first(places);
  } else {
    meet_as_other(places);
  }
  char byte = kJoined;
  for (int other = 0; other < size; ++other) {
    if (other != rank) send_all(peers[other], &byte, 1);
  }
  for (int other = 0; other < size; ++other) {
    if (other != rank) receive(peers[other], &byte, 1);
  }
}

static void kill_and_tell(pid_t victim) {
  const char byte = kDying;
  kill(victim, SIGKILL);
  for (int other = 0; other < size; ++other) {
    if (other != rank) send_all(peers[other], &byte, 1);
  }
  _exit(0);
}

static void die(const char* mode) {
  const pid_t self = getpid();
  if (strcmp(mode, "eof") == 0) kill(self, SIGKILL);
  if (strcmp(mode, "told") == 0 && fork() == 0) kill_and_tell(self);
  for (;;) pause();
}

// Exits 1 at the first word or end of any peer: in every mode there is only one thing left to hear.
static void survive(void) {
  struct pollfd watched[kMostRanks];
  nfds_t count = 0;
  for (int other = 0; other < size; ++other) {
    if (other != rank) watched[count++] = (struct pollfd){.fd = peers[other], .events = POLLIN};
  }
  while (poll(watched, count, -1) < 0) {
  }
  _exit(1);
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  rank = atoi(need("RANK"));
  size = atoi(need("WORLD_SIZE"));
  if (size > kMostRanks) return 2;
  const bool is_victim = rank == atoi(argv[2]);
  if (is_victim) hold_memory(argc > 4 ? strtoul(argv[4], NULL, 10) : 0);
  join();
  sign_roll_call(argv[1], is_victim ? "victim" : "survivor");
  if (is_victim) die(argv[3]);
  survive();
}
