// Same bits through the whole runtime: whatever the order in which ranks ask, and whatever is
// fused.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <set>

#include "tests/ranks/engine/job.h"

namespace hv::runtime {
namespace {

// HVRUN_TEST_SCALE of a count, at least one.
int scaled(int count) {
  const char* text = std::getenv("HVRUN_TEST_SCALE");
  const double scale = text != nullptr ? std::atof(text) : 1;
  return std::max(1, static_cast<int>(count * (scale > 0 ? scale : 1)));
}

// Tensors of a step: with 1 KiB some of them are fused, with 64 MiB all that are ready together.
// The small ones are together below any size at which another algorithm is taken, the large one is
// above: what is fused with it goes another way than alone.
constexpr std::array<std::int64_t, 11> kCounts = {1, 100, 3, 2000, 17, 64, 500, 33, 7, 1200, 40000};

// Of both signs, over 10^-4 ... 10^4: the sum depends on the order.
std::vector<float> values_of(int rank, std::size_t tensor) {
  std::mt19937 random(static_cast<unsigned>(rank) * 1000 + static_cast<unsigned>(tensor));
  std::vector<float> values(static_cast<std::size_t>(kCounts[tensor]));
  for (float& value : values) {
    const double exponent = static_cast<double>(random() % 80001) / 10000 - 4;
    value = static_cast<float>((random() % 2 == 0 ? 1 : -1) * std::pow(10.0, exponent));
  }
  return values;
}

// As FNV-1a, a word at a time, over the bits of all results.
std::uint64_t hash_of(const std::vector<std::vector<float>>& results) {
  std::uint64_t hash = 1469598103934665603u;
  for (const std::vector<float>& result : results)
    for (const float value : result)
      hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 1099511628211u;
  return hash;
}

// One step, asked for in this rank's own order, some of it waited for before the rest is asked for.
// In every second step what is waited for together is a group: ready as one, so that it is fused as
// far as the threshold lets it, whatever the machine's pace.
std::uint64_t run_schedule(const Rank& self, unsigned seed,
                           const std::vector<std::vector<float>>& inputs) {
  std::mt19937 common(seed), own(seed * 100 + static_cast<unsigned>(self.rank));
  std::array<std::size_t, kCounts.size()> order;
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), common);
  const std::size_t first_part = common() % (order.size() + 1);
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(first_part);
  std::shuffle(order.begin(), middle, own);
  std::shuffle(middle, order.end(), own);
  std::vector<std::vector<float>> results;
  for (const std::vector<float>& input : inputs) results.emplace_back(input.size());
  std::vector<std::uint64_t> handles;
  const auto wait_for_all = [&] {
    for (const std::uint64_t handle : handles) {
      const Status status = self.wait(handle);
      expect(status.ok(), status.message);
    }
    handles.clear();
  };
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == first_part) wait_for_all();
    const std::size_t tensor = order[i];
    const std::string name = "tensor " + std::to_string(tensor);
    hvrun_request request = allreduce_request(name.c_str(), &kCounts[tensor], inputs[tensor].data(),
                                              results[tensor].data());
    const std::size_t part = i < first_part ? first_part : order.size() - first_part;
    if (seed % 2 == 0 && part > 1) {
      request.group = 2 * std::uint64_t{seed} + (i < first_part ? 1 : 2);
      request.group_size = static_cast<std::uint32_t>(part);
    }
    const Status status = self.enqueue(request, &handles.emplace_back());
    expect(status.ok(), status.message);
  }
  wait_for_all();
  return hash_of(results);
}

// The hashes of all results, of every schedule with every fusion threshold.
std::set<std::uint64_t> hashes(const JobShape& shape, int schedules,
                               const std::map<std::string, std::string>& knobs) {
  std::mutex mutex;  // guards found
  std::set<std::uint64_t> found;
  const char* const thresholds[] = {"0", "1K", "64M"};
  for (int t = 0; t < 3; ++t) {
    JobOptions options;
    options.shape = shape;
    options.environment.set("HVRUN_FUSION_THRESHOLD", thresholds[t]);
    for (const auto& [name, value] : knobs) options.environment.set(name, value);
    run_job(options, [&, t](Rank& self) {
      std::vector<std::vector<float>> inputs;
      for (std::size_t tensor = 0; tensor < kCounts.size(); ++tensor)
        inputs.push_back(values_of(self.rank, tensor));
      for (int seed = 0; seed < schedules; ++seed) {
        self.at("schedule " + std::to_string(seed));
        const std::uint64_t hash = run_schedule(self, static_cast<unsigned>(seed), inputs);
        std::lock_guard lock(mutex);
        found.insert(hash);
      }
      const std::uint64_t fused = self.context.observation().counters.fused_tensors.value();
      // A grouped schedule, the first for one, fuses, and without room nothing does.
      if (t == 0) expect(fused == 0, "fused beyond the threshold");
      if (t > 0) expect(fused > 0, "nothing was fused");
    });
  }
  return found;
}

const std::map<std::string, std::string> kDeterministic = {{"HVRUN_DETERMINISTIC", "1"}};

}  // namespace

// Apart: each takes minutes where threads are watched for races.
TEST_CASE("a thousand schedules of 3 ranks give one hash, whatever is fused") {
  CHECK(hashes({3}, scaled(1000), kDeterministic).size() == 1);
}

TEST_CASE("a thousand schedules of 5 ranks give one hash, whatever is fused") {
  CHECK(hashes({5}, scaled(1000), kDeterministic).size() == 1);
}

TEST_CASE("a thousand schedules of 8 ranks give one hash, whatever is fused") {
  CHECK(hashes({8}, scaled(1000), kDeterministic).size() == 1);
}

TEST_CASE("schedules of several hosts give one hash, whatever is fused") {
  for (const JobShape& shape :
       {JobShape{1, 1, 1}, JobShape{2, 1, 2}, JobShape{3, 3, 2}, JobShape{1, 1, 1, 1, 1}}) {
    INFO(name_of(shape));
    CHECK(hashes(shape, scaled(50), kDeterministic).size() == 1);
  }
}

TEST_CASE("a tree over hosts, taken at every size, gives one hash too") {
  auto knobs = kDeterministic;
  for (const char* way : {"cross:halving", "cross:doubling", "cross:tree"}) {
    INFO(way);
    knobs["HVRUN_ALGORITHM"] = way;
    CHECK(hashes({1, 1, 1, 1, 1}, scaled(20), knobs).size() == 1);
  }
}

// What the tests above would say of an algorithm that folds in an order of place.
TEST_CASE("the same schedules over a ring give many hashes: the check can go red") {
  for (const JobShape& shape : {JobShape{1, 1, 1}, JobShape{1, 1, 1, 1, 1}})
    CHECK(hashes(shape, 3, {{"HVRUN_ALGORITHM", "allreduce:torus,cross:ring"}}).size() > 1);
}

// Another order from 64 KiB on: only what is fused with the large tensor is folded in it.
TEST_CASE("schedules over a tree that is taken up to a size give many hashes") {
  CHECK(hashes({1, 1, 1, 1, 1}, 3, {{"HVRUN_ALGORITHM", "cross:tree@64K"}}).size() > 1);
}

TEST_CASE("a ring is refused where bits must be the same, on every rank and in words") {
  JobOptions options;
  options.shape = {1, 1, 1};
  options.environment.set("HVRUN_ALGORITHM", "cross:ring");
  options.environment.set("HVRUN_DETERMINISTIC", "1");
  std::string words;
  try {
    run_job(options, [](Rank&) {});
  } catch (const std::exception& error) {
    words = error.what();
  }
  CHECK(words.find("HVRUN_ALGORITHM=cross:ring") != std::string::npos);
}

}  // namespace hv::runtime
