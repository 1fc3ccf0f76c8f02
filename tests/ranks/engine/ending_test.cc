// How a job ends: in order, with work still pending, by the loss of a rank; and that it can begin
// again.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sys/resource.h>

#include <utility>

#include "tests/ranks/engine/job.h"

using namespace hv;
using namespace hv::runtime;

namespace {

bool has_text(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Frees whoever waits for the flag, also when the test fails.
struct SetOnExit {
  std::atomic<bool>& flag;
  ~SetOnExit() {
    flag = true;
    flag.notify_all();
  }
};

// One more of those that have come so far: by come(), or, also when the test fails, at the end.
class Milestone {
 public:
  explicit Milestone(std::atomic<int>& count) : count_(count) {}
  ~Milestone() { come(); }
  void come() {
    if (!std::exchange(has_come_, true)) ++count_;
  }

 private:
  std::atomic<int>& count_;
  bool has_come_ = false;
};

// What this process has used of the machine so far.
struct Use {
  long wakes = 0;  // times that one of its threads went to sleep, and so will have woken up
  std::chrono::microseconds cpu{};

  static Use so_far() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto in_us = [](const timeval& time) {
      return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
    };
    return {used.ru_nvcsw, in_us(used.ru_utime) + in_us(used.ru_stime)};
  }
};

// Throws if so many ranks in this process do not come to rest and stay there, for 1 s each. What is
// counted is how often they wake up, 20 times a second at most: what a wake costs is the machine's
// affair, some 50 us on one that has nothing else to do, and so the budget of a thousandth of a
// core (ThreadSanitizer's own thread wakes up ten times a second). A thread that spins never
// sleeps; it is seen by its CPU time, of which 1 % is left to any machine's noise. At first, on a
// busy machine, engine threads may only be on their way to their bells.
void expect_idle(int ranks) {
  std::string seen;
  bool has_come_to_rest = false;
  for (int look = 0; look < 4; ++look) {
    const Use before = Use::so_far();
    std::this_thread::sleep_for(
        std::chrono::seconds(1));  // sleep-ok: what is measured, nothing is waited for
    const Use after = Use::so_far();
    const long wakes = after.wakes - before.wakes;
    const auto cpu = after.cpu - before.cpu;
    seen += " " + std::to_string(wakes) + " (" + std::to_string(cpu.count()) + " us)";
    const bool is_idle = wakes < ranks * 20 && cpu < ranks * std::chrono::milliseconds(10);
    expect(is_idle || !has_come_to_rest, "came to rest and woke up; wakes in 1 s:" + seen);
    if (is_idle && has_come_to_rest) break;
    has_come_to_rest = is_idle;
    expect(look < 3, "wakes in 1 s:" + seen);
  }
  MESSAGE("idle: wakes in 1 s, all ranks:" << seen);
}

}  // namespace

TEST_CASE("a rank that leaves ends what others have pending, and names itself") {
  for (const int leaver : {0, 1, 3}) {
    CAPTURE(leaver);
    run_job(in_shape({2, 2}), [leaver](Rank& rank) {
      const std::int64_t one = 1;
      float value = 1;
      expect(rank.run(allreduce_request("before", &one, &value, &value)).ok(), "before");
      if (rank.rank == leaver) return rank.context.shutdown();
      const Status pending = rank.run(allreduce_request("pending", &one, &value, &value));
      expect(pending.code == StatusCode::kShutdown, pending.message);
      expect(has_text(pending.message, "rank " + std::to_string(leaver) + " has shut down"),
             pending.message);
      const Status later = rank.run(allreduce_request("later", &one, &value, &value));
      expect(later.code == StatusCode::kShutdown &&
                 has_text(later.message, "rank " + std::to_string(leaver)),
             later.message);
    });
  }
}

TEST_CASE("a shutdown beside a wait ends that wait") {
  std::atomic<bool> is_ended{false};
  run_job(in_shape({2}), [&is_ended](Rank& rank) {
    if (rank.rank == 1) {  // stays: its leaving would end the operation too, or refuse it
      while (!is_ended) std::this_thread::yield();
      return;
    }
    const std::int64_t one = 1;
    float value = 1;
    const SetOnExit ended{is_ended};
    std::uint64_t handle = 0;
    expect(rank.enqueue(allreduce_request("never", &one, &value, &value), &handle).ok(), "enqueue");
    Status outcome;
    std::thread waiter([&] { outcome = rank.wait(handle); });
    rank.context.shutdown();
    waiter.join();
    expect(outcome.code == StatusCode::kShutdown, outcome.message);
  });
}

TEST_CASE(
    "a lost rank ends every pending and later operation on all others, with its name, at once") {
  for (const JobShape& shape : {JobShape{3}, JobShape{2, 2}}) {
    CAPTURE(name_of(shape));
    std::atomic<int> pending{0}, ended{0};
    run_job(in_shape(shape), [&](Rank& rank) {
      const std::int64_t one = 1;
      float value = 1;
      expect(rank.run(allreduce_request("before", &one, &value, &value)).ok(), "before");
      // The last rank plays dead: it takes part in nothing, and the agent says so.
      if (rank.rank == rank.size - 1) {
        while (pending < rank.size - 1) std::this_thread::yield();
        rank.hub.announce_loss(rank.rank, "ended by signal 9 (Killed)");
        while (ended < rank.size - 1) std::this_thread::yield();  // the dead say no goodbye
        return;
      }
      const Milestone end(ended);
      Milestone enqueued(pending);
      std::uint64_t handle = 0;
      expect(rank.enqueue(allreduce_request("pending", &one, &value, &value), &handle).ok(),
             "enqueue");
      const TimePoint start = now();
      enqueued.come();
      const Status status = rank.wait(handle);
      expect(now() - start < kBeforeSilence, "too late");
      expect(status.code == StatusCode::kPeerLost, status.message);
      const std::string name = "rank " + std::to_string(rank.size - 1);
      expect(has_text(status.message, name) && has_text(status.message, "signal 9"),
             status.message);
      const Status later = rank.run(allreduce_request("later", &one, &value, &value));
      expect(later.code == StatusCode::kPeerLost && has_text(later.message, name), later.message);
    });
  }
}

TEST_CASE("a loss is noticed although nobody waits") {
  std::atomic<int> enqueued{0}, ended{0};
  run_job(in_shape({3}), [&](Rank& rank) {
    if (rank.rank == 2) {
      while (enqueued < 2) std::this_thread::yield();
      rank.hub.announce_loss(2, "ended with code 1");
      while (ended < 2) std::this_thread::yield();
      return;
    }
    const std::int64_t one = 1;
    float value = 1;
    const Milestone end(ended);
    Milestone is_enqueued(enqueued);
    std::uint64_t handle = 0;
    expect(rank.enqueue(allreduce_request("pending", &one, &value, &value), &handle).ok(),
           "enqueue");
    is_enqueued.come();
    const OperationPtr operation = rank.context.find(handle);
    while (!operation->is_done) std::this_thread::yield();
    expect(operation->outcome.code == StatusCode::kPeerLost, operation->outcome.message);
  });
}

TEST_CASE("runtimes can be made and ended a hundred times in one process") {
  for (int round = 0; round < 100; ++round) {
    JobOptions options = in_shape({2});
    options.kind = round % 2 == 0 ? RankKind::kThreadsOneMapping : RankKind::kThreadsMemfd;
    options.epoch = round;
    run_job(options, [](Rank& rank) {
      const std::int64_t one = 1;
      float value = 1;
      expect(rank.run(allreduce_request("x", &one, &value, &value)).ok() && value == 2,
             "allreduce");
    });
  }
}

TEST_CASE("an idle runtime uses less than a thousandth of a core, also between hosts") {
  for (const JobShape& shape : {JobShape{2}, JobShape{1, 1}}) {
    CAPTURE(name_of(shape));
    std::atomic<bool> is_measured{false};
    run_job(in_shape(shape), [&](Rank& rank) {
      const std::int64_t one = 1;
      float value = 1;
      expect(rank.run(allreduce_request("x", &one, &value, &value)).ok(), "allreduce");
      if (rank.rank == 1) return is_measured.wait(false);
      const SetOnExit measured{is_measured};
      expect_idle(rank.size);
    });
  }
}

// Between hosts with what peers still say to it unread.
TEST_CASE("after a loss a runtime that nobody has shut down yet is as idle") {
  for (const JobShape& shape : {JobShape{3}, JobShape{1, 1, 1}, JobShape{2, 1}}) {
    CAPTURE(name_of(shape));
    std::atomic<bool> is_measured{false};
    std::atomic<int> pending{0}, ended{0};
    run_job(in_shape(shape), [&](Rank& rank) {
      const std::int64_t one = 1;
      float value = 1;
      if (rank.rank == 2) {
        while (pending < 2) std::this_thread::yield();
        rank.hub.announce_loss(2, "ended with code 1");
        return is_measured.wait(false);
      }
      ++pending;
      const Status status = rank.run(allreduce_request("pending", &one, &value, &value));
      ++ended;
      if (rank.rank == 1) return is_measured.wait(false);
      const SetOnExit measured{is_measured};
      expect(status.code == StatusCode::kPeerLost, status.message);
      while (ended < 2) std::this_thread::yield();
      expect_idle(rank.size);
    });
  }
}

TEST_CASE("a rank that lives and is held lost hears that it is alone, and what it waits for ends") {
  for (const JobShape& shape : {JobShape{1, 1, 1}, JobShape{1, 2}, JobShape{2, 1}}) {
    CAPTURE(name_of(shape));
    JobOptions options = in_shape(shape);
    options.environment.set("HVRUN_PEER_TIMEOUT", "2");  // and so beats
    run_job(options, [&](Rank& rank) {
      const std::int64_t one = 1;
      float value = 1;
      if (rank.rank == 2) rank.hub.announce_loss(2, "is held lost");
      Status status;  // what comes before the others have heard of the loss completes
      do status = rank.run(allreduce_request("x", &one, &value, &value));
      while (status.ok());
      expect(status.code == StatusCode::kPeerLost, status.message);
      if (rank.rank == 2) expect(status.message.find("lost") != std::string::npos, status.message);
    });
  }
}

// Its engine is over as soon as one rank has shut down; what peers say after that stays unread.
TEST_CASE("a runtime that a peer's shutdown has ended is as idle") {
  for (const JobShape& shape : {JobShape{2}, JobShape{1, 1, 1}}) {
    CAPTURE(name_of(shape));
    std::atomic<bool> is_measured{false};
    JobOptions options = in_shape(shape);
    options.shuts_down = false;
    run_job(options, [&](Rank& rank) {
      const std::int64_t one = 1;
      float value = 1;
      if (rank.rank == 1) return rank.context.shutdown();  // waits there for the others
      if (rank.rank == 2) return is_measured.wait(false);
      const SetOnExit measured{is_measured};
      const Status status = rank.run(allreduce_request("late", &one, &value, &value));
      expect(status.code == StatusCode::kShutdown, status.message);
      expect_idle(rank.size);
    });
  }
}
