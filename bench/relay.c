/* A bad network between hosts that are network namespaces: a TUN device in each, and between them
 * links of a given rate, delay, jitter and loss.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Usage: relay MEGABITS DELAY_US JITTER_US LOSS_PERCENT SEED PID:ADDRESS...
 * (root; MEGABITS 0: as fast as it goes; PID: any process of the host; ADDRESS: IPv4, the host's)
 *
 * Makes the device "relay" in each host, prints "ready" and relays until its stdin ends; then it
 * prints what became of the packets, one JSON object. A packet leaves its host's link at its rate,
 * travels for the delay, and arrives over the receiver's link at its rate, one after the other on
 * each; whatever would wait longer than 50 ms for its own link is dropped, as a router's full
 * buffer does. A random part of the jitter is added at the end: packets overtake each other, and
 * without jitter nothing is reordered. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { kMostHosts = 8, kMostBytes = 65536, kAddressAt = 16, kMostHeld = 16384 };
static const int64_t kLongestWaitNs = 50000000;

struct packet {
  int64_t due;
  int64_t number; /* of all that were taken, in order */
  int from, to;
  size_t size;
  unsigned char bytes[];
};
struct host {
  int tun;
  in_addr_t address;
  int64_t out_free, in_free; /* when its link is next idle, each way */
};

static struct host hosts[kMostHosts];
static int host_count;
static struct packet* held[kMostHeld]; /* a heap: what is due first is the first */
static int held_count;
static int64_t newest[kMostHosts][kMostHosts]; /* by sender and receiver: number that has arrived */
static long long carried, lost, dropped, overtaken, taken;
static int64_t jitter_ns;
static double loss_percent;
static double ns_per_byte;
static int64_t delay_ns;

static void fail(const char* what) {
  fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
  exit(1);
}

static int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static int open_tun_of(const char* pid) {
  char path[64];
  struct ifreq request = {0};
  const int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  snprintf(path, sizeof path, "/proc/%s/ns/net", pid);
  const int theirs = open(path, O_RDONLY | O_CLOEXEC);
  if (home < 0 || theirs < 0 || setns(theirs, CLONE_NEWNET) != 0) fail(path);
  const int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  strcpy(request.ifr_name, "relay");
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (tun < 0 || ioctl(tun, TUNSETIFF, &request) != 0) fail("/dev/net/tun");
  if (setns(home, CLONE_NEWNET) != 0) fail("going back to the own network");
  close(theirs);
  close(home);
  return tun;
}

static void read_host(char* word) {
  char* const colon = strchr(word, ':');
  if (!colon || host_count == kMostHosts) {
    fprintf(stderr, "relay: %s: want PID:ADDRESS, at most %d of them\n", word, kMostHosts);
    exit(2);
  }
  *colon = 0;
  struct host* const host = &hosts[host_count++];
  if (inet_pton(AF_INET, colon + 1, &host->address) != 1) {
    fprintf(stderr, "relay: %s: no IPv4 address\n", colon + 1);
    exit(2);
  }
  host->tun = open_tun_of(word);
}

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

static int is_before(int left, int right) {
  if (held[left]->due != held[right]->due) return held[left]->due < held[right]->due;
  return held[left]->number < held[right]->number;
}

static void swap(int left, int right) {
  struct packet* const packet = held[left];
  held[left] = held[right];
  held[right] = packet;
}

static void push(struct packet* packet) {
  int at = held_count++;
  for (held[at] = packet; at > 0 && is_before(at, (at - 1) / 2); at = (at - 1) / 2)
    swap(at, (at - 1) / 2);
}

static struct packet* pop(void) {
  struct packet* const first = held[0];
  held[0] = held[--held_count];
  for (int at = 0;;) {
    int least = at;
    for (int child = 2 * at + 1; child <= 2 * at + 2; ++child)
      if (child < held_count && is_before(child, least)) least = child;
    if (least == at) return first;
    swap(at, least);
    at = least;
  }
}

static void accept_packet(int from, const unsigned char* bytes, size_t size, int64_t now) {
  in_addr_t target;
  int to = 0;
  if (size < kAddressAt + sizeof target || bytes[0] >> 4 != 4) return; /* IPv6's own chatter */
  memcpy(&target, bytes + kAddressAt, sizeof target);
  while (to < host_count && hosts[to].address != target) ++to;
  if (to == host_count) return;
  struct host *const sender = &hosts[from], *const receiver = &hosts[to];
  ++taken;
  if (drand48() * 100 < loss_percent) {
    ++lost;
    return;
  }
  struct packet* const packet = held_count == kMostHeld || sender->out_free - now > kLongestWaitNs
                                    ? NULL
                                    : malloc(sizeof *packet + size);
  if (!packet) {
    ++dropped;
    return;
  }
  const int64_t link_ns = (int64_t)((double)size * ns_per_byte);
  sender->out_free = later(now, sender->out_free) + link_ns;
  receiver->in_free = later(sender->out_free + delay_ns, receiver->in_free + link_ns);
  packet->due = receiver->in_free + (int64_t)(drand48() * (double)jitter_ns);
  packet->number = taken;
  packet->from = from;
  packet->to = to;
  packet->size = size;
  memcpy(packet->bytes, bytes, size);
  push(packet);
}

static void read_all(int from) {
  unsigned char bytes[kMostBytes];
  ssize_t size;
  const int64_t now = now_ns();
  while ((size = read(hosts[from].tun, bytes, sizeof bytes)) > 0)
    accept_packet(from, bytes, (size_t)size, now);
}

/* Hands out what is due; when the next one is, or -1. */
static int64_t deliver(void) {
  while (held_count > 0 && held[0]->due <= now_ns()) {
    struct packet* const packet = pop();
    int64_t* const last = &newest[packet->from][packet->to];
    if (write(hosts[packet->to].tun, packet->bytes, packet->size) < 0) {
      ++dropped; /* the host's end of the device is down or full */
    } else {
      ++carried;
      if (packet->number < *last) ++overtaken;
      *last = later(*last, packet->number);
    }
    free(packet);
  }
  return held_count > 0 ? held[0]->due : -1;
}

static void relay(void) {
  struct pollfd polled[kMostHosts + 1];
  for (int i = 0; i < host_count; ++i) polled[i] = (struct pollfd){hosts[i].tun, POLLIN, 0};
  polled[host_count] = (struct pollfd){0, POLLIN, 0};
  while (!polled[host_count].revents) {
    const int64_t next = deliver(), left = next < 0 ? -1 : later(next - now_ns(), 0);
    const struct timespec wait = {left / 1000000000, left % 1000000000};
    if (ppoll(polled, (nfds_t)host_count + 1, left < 0 ? NULL : &wait, NULL) < 0) fail("poll");
    for (int i = 0; i < host_count; ++i)
      if (polled[i].revents) read_all(i);
  }
}

int main(int argc, char** argv) {
  if (argc < 8 || atof(argv[1]) < 0) {
    fprintf(stderr,
            "usage: %s MEGABITS DELAY_US JITTER_US LOSS_PERCENT SEED PID:ADDRESS PID:ADDRESS...\n",
            argv[0]);
    return 2;
  }
  prctl(PR_SET_TIMERSLACK, 1L);
  prctl(PR_SET_PDEATHSIG, 15L);
  ns_per_byte = atof(argv[1]) > 0 ? 8e3 / atof(argv[1]) : 0;
  delay_ns = atoll(argv[2]) * 1000;
  jitter_ns = atoll(argv[3]) * 1000;
  loss_percent = atof(argv[4]);
  srand48(atol(argv[5]));
  for (int i = 6; i < argc; ++i) read_host(argv[i]);
  puts("ready");
  fflush(stdout);
  relay();
  printf("{\"carried\": %lld, \"lost\": %lld, \"dropped\": %lld, \"overtaken\": %lld}\n", carried,
         lost, dropped, overtaken);
  return 0;
}
