// What ranks leave behind, and how long it may run.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ending/leftovers.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

using namespace hv;
using namespace hv::launcher;
using namespace std::chrono_literals;

namespace {

using Pids = std::vector<pid_t>;

constexpr pid_t kAgent = 1;

// Ranks 3 and 4 are processes 30 and 40 below the agent.
struct Host {
  std::vector<ProcessEntry> own;
  std::map<pid_t, std::string> environments;
  std::vector<Leftovers::Rank> ranks{{3, 30, true}, {4, 40, true}};
  Leftovers leftovers;

  Host() {
    add(30, kAgent, 30);
    add(40, kAgent, 40);
  }
  void add(pid_t pid, pid_t parent, pid_t session, const std::string& rank = "") {
    ProcessEntry process;
    process.pid = pid;
    process.parent = parent;
    process.session = session;
    process.state = 'S';
    own.push_back(process);
    if (!rank.empty())
      environments[pid] = std::string("A=b\0HVRUN_RANK=", 15) + rank + std::string("\0C=", 3);
  }
  void end_rank(std::size_t index) {
    const pid_t pid = ranks.at(index).pid;
    ranks[index].is_running = false;
    std::erase_if(own, [pid](const ProcessEntry& process) { return process.pid == pid; });
    for (ProcessEntry& process : own)
      if (process.parent == pid) process.parent = kAgent;
  }
  Pids take(Duration until = 1s) {
    Pids taken = leftovers.take(
        own, ranks, [this](pid_t pid) { return environments[pid]; }, TimePoint(until));
    std::sort(taken.begin(), taken.end());
    return taken;
  }
  std::set<pid_t> spared(Duration at, TimePoint* last) {
    return leftovers.spared(own, TimePoint(at), last);
  }
};

}  // namespace

TEST_CASE("nothing of a running rank is left behind, daemons included") {
  Host host;
  host.add(31, 30, 30);           // its child
  host.add(32, kAgent, 30);       // its orphan
  host.add(33, kAgent, 33, "3");  // a daemon
  host.add(34, kAgent, 34);       // one without its environment
  CHECK(host.take() == Pids{});
}

TEST_CASE("what a rank leaves behind is taken once it has ended, and only once") {
  Host host;
  host.add(31, 30, 30);
  host.add(32, kAgent, 30);
  host.add(33, kAgent, 33, "3");
  host.add(34, 33, 33, "3");  // a child of the daemon
  host.add(41, 40, 40);
  host.add(42, kAgent, 42, "4");
  host.end_rank(0);
  CHECK(host.take() == Pids{31, 32, 33, 34});
  CHECK(host.take() == Pids{});
  host.end_rank(1);
  CHECK(host.take() == Pids{41, 42});
}

TEST_CASE("a process of no known rank is left behind once no rank runs") {
  Host host;
  host.add(50, kAgent, 50);
  host.add(51, kAgent, 51, "34");  // no rank of this host
  host.end_rank(0);
  CHECK(host.take() == Pids{});
  host.end_rank(1);
  CHECK(host.take() == Pids{50, 51});
}

TEST_CASE("zombies and processes that have got SIGTERM already are left alone") {
  Host host;
  host.add(31, 30, 30);
  host.add(32, 30, 30);
  host.own.back().state = 'Z';
  host.add(33, 30, 30);
  host.leftovers.note_signalled({host.own[2]});
  host.end_rank(0);
  CHECK(host.take() == Pids{33});
}

TEST_CASE("what ranks leave behind is spared until its own time, with its descendants") {
  Host host;
  host.add(31, 30, 30);
  host.add(41, 40, 40);
  host.leftovers.note_signalled({host.own[2]});  // it is spared all the same
  host.end_rank(0);
  host.take(5s);
  host.end_rank(1);
  host.take(7s);
  host.add(42, 41, 40);  // started since
  host.add(43, kAgent, 43);
  TimePoint last;
  CHECK(host.spared(1s, &last) == std::set<pid_t>{31, 41, 42});
  CHECK(last == TimePoint(7s));
  CHECK(host.spared(5s, &last) == std::set<pid_t>{41, 42});
  CHECK(host.spared(7s, &last).empty());
}

TEST_CASE("the end of one rank gives what another left behind no more time") {
  Host host;
  host.add(31, 30, 30);
  host.end_rank(0);
  host.take(5s);
  host.end_rank(1);
  host.take(9s);
  TimePoint last;
  CHECK(host.spared(5s, &last).empty());
}

TEST_CASE("a pid that was given to another process is another process") {
  Host host;
  host.add(31, 30, 30);
  host.end_rank(0);
  CHECK(host.take() == Pids{31});
  host.own.back().start_time = 9;
  CHECK(host.take() == Pids{31});
}
