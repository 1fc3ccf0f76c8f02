// Whole runtimes through training steps: tensors that come together become buckets, and whoever
// leaves the beaten track is served all the same.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <random>
#include <thread>

#include "tests/ranks/drawn.h"
#include "tests/ranks/engine/job.h"

using namespace hv;
using namespace hv::runtime;

namespace {

constexpr int kTensors = 12;

// A model whose gradients are summed step by step; every value is checked.
class Model {
 public:
  explicit Model(const Rank& rank) : rank_(rank) {
    for (int i = 0; i < kTensors; ++i) {
      counts_[i] = 1 + 37 * i;
      values_[i].resize(static_cast<std::size_t>(counts_[i]));
    }
  }

  void enqueue(int i) {
    std::fill(values_[i].begin(), values_[i].end(), static_cast<float>(i + rank_.rank));
    const std::string name = "gradient " + std::to_string(i);
    const Status status = rank_.enqueue(
        allreduce_request(name.c_str(), &counts_[i], values_[i].data(), values_[i].data()),
        &handles_[i]);
    expect(status.ok(), status.message);
  }
  void wait(int i) {
    const Status status = rank_.wait(handles_[i]);
    expect(status.ok(), status.message);
    rank_.context.release(handles_[i]);
    const int size = rank_.size;
    const auto sum = static_cast<float>(i * size + size * (size - 1) / 2);
    for (const float value : values_[i])
      expect(value == sum, "gradient " + std::to_string(i) + " is " + std::to_string(value) +
                               " instead of " + std::to_string(sum));
  }
  bool is_done(int i) const {
    const OperationPtr operation = rank_.context.find(handles_[i]);
    rank_.context.await(*operation);
    return operation->is_done;
  }

 private:
  const Rank& rank_;
  std::int64_t counts_[kTensors]{};
  std::vector<float> values_[kTensors];
  std::uint64_t handles_[kTensors]{};
};

const Counters& counters_of(const Rank& rank) { return rank.context.observation().counters; }

std::vector<int> order() {
  std::vector<int> all(kTensors);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

TEST_CASE("steps that are alike are agreed on bucket by bucket, until one is not") {
  for (const bool has_buckets : {true, false}) {
    CAPTURE(has_buckets);
    JobOptions options = in_shape({2, 1});
    if (!has_buckets) options.environment.set("HVRUN_BUCKET_BYTES", "0");
    run_job(options, [has_buckets](Rank& rank) {
      Model model(rank);
      for (int step = 0; step < 30; ++step) {
        for (const int i : order()) model.enqueue(i);
        for (const int i : order()) model.wait(i);
      }
      expect((counters_of(rank).kept_buckets.value() > 0) == has_buckets, "kept");
      const std::uint64_t given_up = counters_of(rank).given_up_buckets.value();
      expect(rank.run(barrier_request()).ok(), "barrier");  // nobody goes on before all have looked
      for (const int i : order()) {  // each by itself: nobody holds any of them back
        model.enqueue(i);
        model.wait(i);
      }
      expect((counters_of(rank).given_up_buckets.value() > given_up) == has_buckets, "given up");
    });
  }
}

TEST_CASE("training steps, with now and then a rank that does them in another way") {
  for (const JobShape& shape : {JobShape{2}, JobShape{3}, JobShape{2, 2}, JobShape{1, 2, 1}}) {
    CAPTURE(name_of(shape));
    const int steps = 20 + scaled(40);
    run_job(in_shape(shape), [steps](Rank& rank) {
      Model model(rank);
      std::mt19937_64 random(static_cast<std::uint64_t>(rank.rank));
      for (int step = 0; step < steps; ++step) {
        rank.at("step " + std::to_string(step));
        // Ranks drift apart only where they may: in the order, and in when they wait.
        const bool is_odd = step > 10 && random() % 12 == 0;
        std::vector<int> todo = order();
        if (is_odd) std::shuffle(todo.begin(), todo.end(), random);
        const int early = is_odd ? static_cast<int>(random() % kTensors) : -1;
        for (const int i : todo) {
          model.enqueue(i);
          if (i != early) continue;
          // Others get there without waiting for this rank's other tensors.
          while (!model.is_done(i)) std::this_thread::yield();
        }
        for (const int i : todo) model.wait(i);
      }
    });
  }
}

TEST_CASE("a rank that waits for each tensor by itself does not hold up ranks that do not") {
  run_job(in_shape({2, 1}), [](Rank& rank) {
    Model model(rank);
    for (int step = 0; step < 30; ++step) {
      rank.at("step " + std::to_string(step));
      const bool waits_at_once = step > 8 && rank.rank == step % 3;
      for (const int i : order()) {
        model.enqueue(i);
        if (waits_at_once) model.wait(i);
      }
      if (waits_at_once) continue;
      for (const int i : order()) model.wait(i);
    }
  });
}

TEST_CASE("several threads wait for tensors of one bucket") {
  run_job(in_shape({2, 1}), [](Rank& rank) {
    Model model(rank);
    for (int step = 0; step < 30; ++step) {
      rank.at("step " + std::to_string(step));
      for (const int i : order()) model.enqueue(i);
      std::vector<std::thread> waiters;
      std::atomic<int> failures{0};
      for (int t = 0; t < 3; ++t) {
        waiters.emplace_back([&, t] {
          try {
            for (int i = t; i < kTensors; i += 3) model.wait(i);
          } catch (const std::exception& wrong) {
            MESSAGE(wrong.what());
            ++failures;
          }
        });
      }
      for (std::thread& waiter : waiters) waiter.join();
      expect(failures == 0, "a wait went wrong");
    }
  });
}
