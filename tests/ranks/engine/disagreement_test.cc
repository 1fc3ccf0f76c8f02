// Ranks that disagree, repeat themselves or come late: told in words, and the job goes on.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <condition_variable>
#include <mutex>

#include "src/base/log.h"
#include "tests/ranks/engine/job.h"

using namespace hv;
using namespace hv::runtime;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Log lines of this program, kept for the test.
struct LogKeeper {
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static std::vector<std::string>& lines() {
    static std::vector<std::string> all;
    return all;
  }
  static std::condition_variable& changed() {
    static std::condition_variable one;
    return one;
  }
  LogKeeper() {
    lines().clear();
    set_log_sink([](const std::string& line) {
      const std::lock_guard lock(mutex());
      lines().push_back(line);
      changed().notify_all();
    });
  }
  ~LogKeeper() { set_log_sink(nullptr); }
  // Waits for a line that holds this; false after 20 s.
  static bool await(const std::string& part) {
    std::unique_lock lock(mutex());
    return changed().wait_for(lock, std::chrono::seconds(20), [&] {
      for (const std::string& line : lines()) {
        if (contains(line, part)) return true;
      }
      return false;
    });
  }
};

}  // namespace

TEST_CASE(
    "a mismatch of shapes fails that tensor on every rank, says who said what, and the job goes "
    "on") {
  run_job(in_shape({2, 2}), [](Rank& rank) {
    for (int round = 0; round < 3; ++round) {  // the second time one form may be in the cache
      const std::int64_t good[] = {3, 4}, bad[] = {4, 3};
      std::vector<float> data(12, 1);
      hvrun_request request =
          allreduce_request("w", rank.rank == 3 ? bad : good, data.data(), data.data());
      request.ndim = 2;
      const Status status = rank.run(request);
      expect(status.code == StatusCode::kMismatch, "mismatch: " + status.message);
      expect(contains(status.message,
                      "tensor 'w': ranks 0-2 have float32 [3,4], rank 3 has float32 [4,3]"),
             status.message);
      const std::int64_t count = 12;
      expect(rank.run(allreduce_request("other", &count, data.data(), data.data())).ok() &&
                 data[0] == 4,
             "go on");
      hvrun_request agreed = allreduce_request("w", good, data.data(), data.data());
      agreed.ndim = 2;
      expect(rank.run(agreed).ok() && data[0] == 16, "the same name, agreed on");
    }
  });
}

TEST_CASE("a mismatch of operation, type, reduction, root or scale is told as such") {
  run_job(in_shape({3}), [](Rank& rank) {
    const std::int64_t count = 2;
    double data[2] = {1, 2};
    const auto words = [&](auto change) {
      hvrun_request request = allreduce_request("m", &count, data, data, HVRUN_FLOAT32);
      if (rank.rank == 1) change(request);
      const Status status = rank.run(request);
      expect(status.code == StatusCode::kMismatch, "a mismatch: " + status.message);
      return status.message;
    };
    std::string text = words([](hvrun_request& r) { r.operation = HVRUN_BROADCAST; });
    expect(contains(text, "ranks 0,2 have allreduce of float32 [2]") &&
               contains(text, "rank 1 has broadcast"),
           text);
    text = words([](hvrun_request& r) { r.type = HVRUN_INT32; });
    expect(contains(text, "rank 1 has int32 [2]"), text);
    text = words([](hvrun_request& r) { r.reduction = HVRUN_MAX; });
    expect(contains(text, "rank 1 has float32 [2] with reduction max"), text);
    text = words([](hvrun_request& r) { r.prescale = 2; });
    expect(contains(text, "rank 1 has float32 [2] scaled by 2 and 1"), text);
    hvrun_request request = allreduce_request("r", &count, data, data, HVRUN_FLOAT64);
    request.operation = HVRUN_BROADCAST;
    request.root = rank.rank;
    text = rank.run(request).message;
    expect(contains(text, "rank 2 has float64 [2] from root 2"), text);
  });
}

TEST_CASE("a name in flight is refused, and may be used again once it is complete") {
  run_job(in_shape({2}), [](Rank& rank) {
    const std::int64_t one = 1;
    float value = 1;
    float other = 1;
    std::uint64_t handle = 0, second = 0;
    // Rank 0 holds its barrier back, so that "x" cannot complete on rank 1 meanwhile.
    if (rank.rank == 1) {
      expect(rank.enqueue(allreduce_request("x", &one, &value, &value), &handle).ok(), "enqueue");
      const Status twice = rank.enqueue(allreduce_request("x", &one, &other, &other), &second);
      expect(twice.code == StatusCode::kDuplicate && contains(twice.message, "'x' is in flight"),
             twice.message);
    }
    const hvrun_request barrier = barrier_request();
    expect(rank.run(barrier).ok(), "barrier");
    if (rank.rank == 0)
      expect(rank.enqueue(allreduce_request("x", &one, &value, &value), &handle).ok(), "enqueue");
    expect(rank.wait(handle).ok() && value == 2, "the first one");
    expect(rank.run(allreduce_request("x", &one, &other, &other)).ok() && other == 2,
           "the name again");
  });
}

TEST_CASE(
    "a tensor that ranks miss for long is warned about with their names, and then completes") {
  LogKeeper log;
  JobOptions options = in_shape({2, 2});
  options.environment.set("HVRUN_STALL_SECONDS", "0.2");
  const std::string named = "for ranks 1,3; it is ready on the other 2 of 4 ranks";
  run_job(options, [&named](Rank& rank) {
    const std::int64_t one = 1;
    float value = 1;
    // The late ranks wait for the warning itself, so no time is guessed: for the one that names
    // just them, since on a slow machine the first may come before the others are heard of.
    if (rank.rank == 1 || rank.rank == 3)
      expect(LogKeeper::await(named), "no warning of these ranks came");
    const Status status = rank.run(allreduce_request("late", &one, &value, &value));
    expect(status.ok() && value == 4, status.message);
  });
  const std::lock_guard lock(LogKeeper::mutex());
  for (const std::string& line : LogKeeper::lines())
    if (contains(line, named)) CHECK(contains(line, "tensor 'late' has waited"));
}

TEST_CASE("callers in several threads of each rank wait for different tensors at once") {
  run_job(in_shape({3}), [](Rank& rank) {
    std::vector<std::thread> callers;
    std::atomic<int> good{0};
    for (int t = 0; t < 4; ++t) {
      callers.emplace_back([&rank, &good, t] {
        for (int i = 0; i < 100; ++i) {
          const std::string name =
              "t" + std::to_string((t + rank.rank) % 4) + "." + std::to_string(i);
          const std::int64_t count = 64;
          std::vector<std::int32_t> data(64, i);
          if (rank.run(allreduce_request(name.c_str(), &count, data.data(), data.data(),
                                         HVRUN_INT32))
                  .ok() &&
              data[63] == 3 * i) {
            ++good;
          }
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    expect(good == 400, std::to_string(good) + " of 400");
  });
}

TEST_CASE("operations complete although nobody waits for them") {
  run_job(in_shape({2, 1}), [](Rank& rank) {
    for (int round = 0; round < 20; ++round) {
      const std::int64_t count = 100000;
      std::vector<float> data(100000, 1);
      std::uint64_t handle = 0;
      expect(rank.enqueue(allreduce_request("x", &count, data.data(), data.data()), &handle).ok(),
             "enqueue");
      const OperationPtr operation = rank.context.find(handle);
      while (!operation->is_done) std::this_thread::yield();
      expect(rank.wait(handle).ok() && data[99999] == 3, "content");
      rank.context.release(handle);
    }
  });
}

TEST_CASE("a wait whose time has passed says so, and the operation goes on") {
  run_job(in_shape({2}), [](Rank& rank) {
    const std::int64_t one = 1;
    float value = 1;
    std::uint64_t handle = 0;
    const hvrun_request barrier = barrier_request();
    if (rank.rank == 0) {
      expect(rank.enqueue(allreduce_request("x", &one, &value, &value), &handle).ok(), "enqueue");
      const Status status =
          rank.context.wait(*rank.context.find(handle), now() + std::chrono::milliseconds(20));
      expect(status.code == StatusCode::kInProgress, "in progress");
    }
    expect(rank.run(barrier).ok(), "barrier");
    if (rank.rank == 1)
      expect(rank.enqueue(allreduce_request("x", &one, &value, &value), &handle).ok(), "enqueue");
    expect(rank.wait(handle).ok() && value == 2, "content");
  });
}
