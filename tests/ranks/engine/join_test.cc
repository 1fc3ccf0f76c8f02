// Ranks that run out of data in whole jobs. SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <random>
#include <thread>

#include "tests/ranks/engine/job.h"

using namespace hv;
using namespace hv::runtime;

namespace {

const std::vector<JobShape> kJoinShapes{{1}, {2}, {3}, {2, 2}, {1, 3, 2}};

hvrun_request join_request(std::uint32_t set = 0) {
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = HVRUN_JOIN;
  request.process_set = set;
  return request;
}

// The last rank works longest; or the first one, in every second epoch.
int steps_of(const Rank& rank, int epoch) {
  return epoch % 2 == 0 ? rank.rank + 1 : rank.size - rank.rank;
}

}  // namespace

TEST_CASE(
    "allreduces go on with zeros for ranks that have joined, and the join says who was last") {
  for (const JobShape& shape : kJoinShapes) {
    CAPTURE(name_of(shape));
    JobOptions options;
    options.shape = shape;
    run_job(options, [](Rank& rank) {
      for (int epoch = 0; epoch < 4; ++epoch) {
        const bool divides_by_present = epoch / 2 == 1;
        for (int step = 0; step < steps_of(rank, epoch); ++step) {
          const std::int64_t count = 1000 + step;
          std::vector<std::int32_t> ones(static_cast<std::size_t>(count), 1), sum(ones.size());
          std::vector<float> values(ones.size(), 6), mean(ones.size());
          std::uint64_t handles[2];
          rank.at("step " + std::to_string(step));
          const Status first = rank.enqueue(
              allreduce_request("sum", &count, ones.data(), sum.data(), HVRUN_INT32), &handles[0]);
          expect(first.ok(), first.message);
          hvrun_request average = allreduce_request("mean", &count, values.data(), mean.data(),
                                                    HVRUN_FLOAT32, HVRUN_AVERAGE);
          if (divides_by_present) average.flags = HVRUN_AVERAGE_PRESENT;
          expect(rank.enqueue(average, &handles[1]).ok(), "enqueue");
          for (const std::uint64_t handle : handles) {
            const Status status = rank.wait(handle);
            expect(status.ok(), status.message);
            rank.context.release(handle);
          }
          const int present = rank.size - step;
          expect(sum == std::vector<std::int32_t>(ones.size(), present), "sum");
          const float expected = divides_by_present ? 6.0f
                                                    : 6.0f * static_cast<float>(present) /
                                                          static_cast<float>(rank.size);
          expect(std::abs(mean[0] - expected) < 1e-5f && mean.back() == mean[0],
                 "mean " + std::to_string(mean[0]) + ", not " + std::to_string(expected));
        }
        rank.at("joining");
        OperationPtr join;
        const Status status = rank.run(join_request(), &join);
        expect(status.ok(), status.message);
        expect(join->last_joined == (epoch % 2 == 0 ? rank.size - 1 : 0), "who was last");
      }
    });
  }
}

TEST_CASE(
    "what needs every rank is an error for those that call it, and the join ends all the same") {
  for (const JobShape& shape : {JobShape{3}, JobShape{2, 1}}) {
    JobOptions options;
    options.shape = shape;
    run_job(options, [](Rank& rank) {
      const std::int64_t one = 1;
      std::int32_t value = rank.rank, all[3] = {};
      std::uint64_t join = 0;
      if (rank.rank == 1) expect(rank.enqueue(join_request(), &join).ok(), "join");
      for (const hvrun_operation operation :
           {HVRUN_ALLGATHER, HVRUN_BROADCAST, HVRUN_ALLTOALL, HVRUN_REDUCESCATTER, HVRUN_BARRIER}) {
        if (rank.rank == 1) break;
        const std::int64_t three = 3;
        hvrun_request request = allreduce_request("x", operation == HVRUN_ALLTOALL ? &three : &one,
                                                  all, nullptr, HVRUN_INT32);
        request.operation = operation;
        request.reduction = HVRUN_SUM;
        const Status status = rank.run(request);
        expect(status.code == StatusCode::kUnsupported, status.message);
        expect(status.message.find("rank 1 has joined") != std::string::npos, status.message);
      }
      if (rank.rank != 1) expect(rank.enqueue(join_request(), &join).ok(), "join");
      const Status joined = rank.wait(join);
      expect(joined.ok(), joined.message);
      expect(rank.run(allreduce_request("sum", &one, &value, &value, HVRUN_INT32)).ok(), "sum");
      expect(value == 3, "all work again");
    });
  }
}

TEST_CASE("a rank that has joined enqueues nothing until all have, sets join by themselves") {
  JobOptions options;
  options.shape = {2, 1};
  run_job(options, [](Rank& rank) {
    std::uint32_t set = 0;
    expect(rank.context.add_process_set({0, 2}, &set).ok(), "add");
    const std::int64_t one = 1;
    std::int32_t value = 1;
    std::uint64_t join = 0, again = 0, sum = 0;
    if (rank.rank == 0) {
      expect(rank.enqueue(join_request(set), &join).ok(), "join");
      hvrun_request request = allreduce_request("late", &one, &value, &value, HVRUN_INT32);
      request.process_set = set;
      const Status late = rank.enqueue(request, &sum);
      expect(late.code == StatusCode::kArgument, late.message);
      expect(late.message.find("has joined process set 1") != std::string::npos, late.message);
      expect(rank.enqueue(join_request(set), &again).code == StatusCode::kArgument, "twice");
    }
    // Set 0 knows nothing of that.
    expect(rank.run(allreduce_request("all", &one, &value, &value, HVRUN_INT32)).ok(), "all");
    expect(value == 3, "sum of all");
    if (rank.rank == 2) {
      std::int32_t mine = 5;
      hvrun_request request = allreduce_request("rest", &one, &mine, &mine, HVRUN_INT32);
      request.process_set = set;
      expect(rank.run(request).ok() && mine == 5, "with zeros of rank 0");
      expect(rank.enqueue(join_request(set), &join).ok(), "join");
    }
    if (rank.rank != 1) {
      expect(rank.wait(join).ok(), "joined");
      expect(rank.context.find(join)->last_joined == 1, "place 1 of the set");
    }
    expect(rank.context.remove_process_set(set).ok(), "remove");
  });
}

TEST_CASE("an average of a process set divides by the whole set, or by those present if asked to") {
  for (const JobShape& shape : {JobShape{4}, JobShape{2, 1, 1}}) {
    CAPTURE(name_of(shape));
    for (const int leaver : {0, 1, 3}) {
      CAPTURE(leaver);
      JobOptions options;
      options.shape = shape;
      run_job(options, [leaver](Rank& rank) {
        std::uint32_t set = 0;
        expect(rank.context.add_process_set({0, 1, 3}, &set).ok(), "add");
        if (rank.rank == 2) return;
        const std::int64_t one = 1;
        OperationPtr join;
        if (rank.rank != leaver) {
          for (const bool by_present : {false, true}) {
            float value = 6;
            hvrun_request request = allreduce_request(by_present ? "present" : "whole", &one,
                                                      &value, &value, HVRUN_FLOAT32, HVRUN_AVERAGE);
            request.process_set = set;
            if (by_present) request.flags = HVRUN_AVERAGE_PRESENT;
            const Status status = rank.run(request);
            expect(status.ok(), status.message);
            expect(value == (by_present ? 6.0f : 4.0f), "average " + std::to_string(value));
          }
        }
        const Status joined = rank.run(join_request(set), &join);
        expect(joined.ok(), joined.message);
        const int leaver_place = leaver == 3 ? 2 : leaver;
        expect(join->last_joined != leaver_place, "who was last");
      });
    }
  }
}

TEST_CASE(
    "random numbers of steps, groups and names that are evicted: the sums are of those that work") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    JobOptions options;
    options.shape = seed % 2 == 0 ? JobShape{4} : JobShape{2, 1, 1};
    if (seed % 3 == 0) options.environment.set("HVRUN_CACHE_CAPACITY", "2");
    run_job(options, [seed](Rank& rank) {
      std::mt19937_64 shared(seed);
      for (int epoch = 0; epoch < 4; ++epoch) {
        std::vector<int> steps;
        for (int r = 0; r < rank.size; ++r) steps.push_back(static_cast<int>(shared() % 8));
        const int mine = steps[static_cast<std::size_t>(rank.rank)];
        for (int step = 0; step < mine; ++step) {
          const auto present =
              std::count_if(steps.begin(), steps.end(), [&](int s) { return s > step; });
          std::int64_t values[3] = {1, 10, 100};
          std::uint64_t handles[3];
          const std::int64_t one = 1;
          for (int i = 0; i < 3; ++i) {
            const std::string name = "t" + std::to_string(i) + (step % 2 ? "" : "even");
            hvrun_request request =
                allreduce_request(name.c_str(), &one, &values[i], &values[i], HVRUN_INT64);
            if (i < 2) {
              request.group = 3 + static_cast<std::uint64_t>(step % 2);
              request.group_size = 2;
            }
            const Status status = rank.enqueue(request, &handles[i]);
            expect(status.ok(), status.message);
          }
          for (int i = 0; i < 3; ++i) {
            const Status status = rank.wait(handles[i]);
            expect(status.ok(), status.message);
            rank.context.release(handles[i]);
          }
          expect(values[0] == present && values[1] == 10 * present && values[2] == 100 * present,
                 "sums of " + std::to_string(present) + " ranks");
        }
        const Status joined = rank.run(join_request());
        expect(joined.ok(), joined.message);
      }
    });
  }
}

TEST_CASE("a join after a change of sets that was refused ends, and so does the next change") {
  JobOptions options;
  options.shape = {2, 1};
  run_job(options, [](Rank& rank) {
    std::uint32_t set = 0;
    const Status mismatch = rank.context.add_process_set({rank.rank == 0 ? 1 : 2}, &set);
    expect(mismatch.code == StatusCode::kMismatch, mismatch.message);
    expect(rank.run(join_request()).ok(), "join after a mismatch");
    std::uint64_t join = 0;
    if (rank.rank == 1) {
      expect(rank.enqueue(join_request(), &join).ok(), "join");
    } else {
      const Status refused = rank.context.add_process_set({0, 2}, &set);
      expect(refused.code == StatusCode::kUnsupported, refused.message);
      expect(rank.enqueue(join_request(), &join).ok(), "join");
    }
    const Status joined = rank.wait(join);
    expect(joined.ok(), joined.message);
    const Status added = rank.context.add_process_set({0, 2}, &set);
    expect(added.ok(), added.message);
  });
}

TEST_CASE("a join beside a change that is under way holds up nobody") {
  for (int round = 0; round < 20; ++round) {
    JobOptions options;
    options.shape = {3};
    options.shuts_down = false;  // what comes too late for the others ends only by their leaving
    run_job(options, [](Rank& rank) {
      std::uint32_t set = 0;
      Status added;
      std::thread changing([&] { added = rank.context.add_process_set({0, 2}, &set); });
      // The change is carried out, or refused because this rank or another has joined; or it comes
      // when all have joined, and others have shut down. In no case does anybody wait for ever.
      std::uint64_t join = 0;
      expect(rank.enqueue(join_request(), &join).ok(), "join");
      const Status joined = rank.wait(join);
      changing.join();
      expect(joined.ok(), joined.message);
      const bool is_told = added.code == StatusCode::kArgument ||
                           added.code == StatusCode::kUnsupported ||
                           added.code == StatusCode::kShutdown;
      expect(added.ok() || is_told, added.message);
      rank.context.shutdown();
    });
  }
}

TEST_CASE("names that begin like the library's own are refused") {
  run_job({}, [](Rank& rank) {
    const std::int64_t one = 1;
    std::int32_t value = 1;
    std::uint64_t handle = 0;
    const Status status =
        rank.enqueue(allreduce_request("hvrun:join", &one, &value, &value, HVRUN_INT32), &handle);
    expect(status.code == StatusCode::kArgument, status.message);
    expect(rank.run(join_request()).ok(), "join");
  });
}
