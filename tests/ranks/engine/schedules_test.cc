// Same bits through the whole runtime: whatever the order in which ranks ask, and whatever is
// fused.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <set>

#include "tests/ranks/drawn.h"
#include "tests/ranks/engine/job.h"

namespace hv::runtime {
namespace {

// Tensors of a step: with 1 KiB some of them are fused, with 64 MiB all that are ready together.
// The small ones are together below any size at which another algorithm is taken, the large one is
// above: what is fused with it goes another way than alone.
struct Tensor {
  std::int64_t count;
  hvrun_operation operation = HVRUN_ALLREDUCE;
  hvrun_compression compression = HVRUN_COMPRESSION_NONE;
};
constexpr std::array<Tensor, 15> kScheduledTensors = {
    {{1},
     {100},
     {3},
     {2000},
     {17},
     {64},
     {500},
     {33},
     {7},
     {1200},
     {40000},
     {50, HVRUN_ALLREDUCE, HVRUN_COMPRESSION_FP16},
     {3000, HVRUN_ALLREDUCE, HVRUN_COMPRESSION_FP16},
     {20, HVRUN_REDUCESCATTER},
     {2000, HVRUN_REDUCESCATTER}}};
constexpr std::size_t kFirstCompressed = 11, kLargeCompressed = 12;

float random_value(std::mt19937* random, double lowest_exponent, double highest_exponent) {
  const double share = static_cast<double>((*random)() % 10001) / 10000;
  const double exponent = lowest_exponent + share * (highest_exponent - lowest_exponent);
  return static_cast<float>(((*random)() % 2 == 0 ? 1 : -1) * std::pow(10.0, exponent));
}

// Of both signs, over 10^-4 ... 10^4: the sum depends on the order. Of every other element two
// ranks' values cancel out and the others' are small: so does what is rounded to 16 bits.
std::vector<float> values_of(int rank, std::size_t tensor) {
  std::mt19937 own(static_cast<unsigned>(rank) * 1000 + static_cast<unsigned>(tensor)), common(17);
  std::vector<float> values(static_cast<std::size_t>(kScheduledTensors[tensor].count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float large = random_value(&common, 4, 4), small = random_value(&own, -4, 0);
    values[i] = i % 2 == 0 ? small : random_value(&own, -4, 4);
    const int turn = static_cast<int>(i / 2 % 3);
    if (i % 2 == 0 && rank == turn) values[i] = large;
    if (i % 2 == 0 && rank == (turn + 1) % 3) values[i] = -large;
  }
  return values;
}

// As FNV-1a, a word at a time, over the bits of a result.
std::uint64_t hash_of(const std::vector<float>& result) {
  std::uint64_t hash = 1469598103934665603u;
  for (const float value : result)
    hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 1099511628211u;
  return hash;
}

hvrun_request scheduled_request(std::size_t tensor, const std::string& name, const float* input,
                                float* output) {
  hvrun_request request =
      allreduce_request(name.c_str(), &kScheduledTensors[tensor].count, input, output);
  request.operation = kScheduledTensors[tensor].operation;
  request.compression = kScheduledTensors[tensor].compression;
  return request;
}

// One step, asked for in this rank's own order, some of it waited for before the rest is asked for.
// In every second step what is waited for together is a group: ready as one, so that it is fused as
// far as the threshold lets it, whatever the machine's pace.
std::vector<std::vector<float>> run_schedule(const Rank& self, unsigned seed,
                                             const std::vector<std::vector<float>>& inputs) {
  std::mt19937 common(seed), own(seed * 100 + static_cast<unsigned>(self.rank));
  std::array<std::size_t, kScheduledTensors.size()> order;
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
    hvrun_request request =
        scheduled_request(tensor, name, inputs[tensor].data(), results[tensor].data());
    const std::size_t part = i < first_part ? first_part : order.size() - first_part;
    if (seed % 2 == 0 && part > 1) {
      request.group = 2 * std::uint64_t{seed} + (i < first_part ? 1 : 2);
      request.group_size = static_cast<std::uint32_t>(part);
    }
    const Status status = self.enqueue(request, &handles.emplace_back());
    expect(status.ok(), status.message);
  }
  wait_for_all();
  return results;
}

// How many hashes each tensor's result has, over every schedule with every fusion threshold and
// over all ranks; of shares, which are each rank's own, the most that one rank's has.
using HashCounts = std::array<std::size_t, kScheduledTensors.size()>;
HashCounts hashes(const JobShape& shape, int schedules,
                  const std::map<std::string, std::string>& knobs) {
  std::mutex mutex;  // guards found
  std::map<std::pair<std::size_t, int>, std::set<std::uint64_t>> found;
  const char* const thresholds[] = {"0", "1K", "64M"};
  for (int t = 0; t < 3; ++t) {
    JobOptions options;
    options.shape = shape;
    options.environment.set("HVRUN_FUSION_THRESHOLD", thresholds[t]);
    for (const auto& [name, value] : knobs) options.environment.set(name, value);
    run_job(options, [&, t](Rank& self) {
      std::vector<std::vector<float>> inputs;
      for (std::size_t tensor = 0; tensor < kScheduledTensors.size(); ++tensor)
        inputs.push_back(values_of(self.rank, tensor));
      for (int seed = 0; seed < schedules; ++seed) {
        self.at("schedule " + std::to_string(seed));
        const auto results = run_schedule(self, static_cast<unsigned>(seed), inputs);
        std::lock_guard lock(mutex);
        for (std::size_t tensor = 0; tensor < results.size(); ++tensor) {
          const bool is_share = kScheduledTensors[tensor].operation == HVRUN_REDUCESCATTER;
          found[{tensor, is_share ? self.rank : -1}].insert(hash_of(results[tensor]));
        }
      }
      const std::uint64_t fused = self.context.observation().counters.fused_tensors.value();
      // A grouped schedule, the first for one, fuses, and without room nothing does.
      if (t == 0) expect(fused == 0, "fused beyond the threshold");
      if (t > 0) expect(fused > 0, "nothing was fused");
    });
  }
  HashCounts counts{};
  for (const auto& [key, values] : found)
    counts[key.first] = std::max(counts[key.first], values.size());
  return counts;
}

std::size_t most_hashes(const JobShape& shape, int schedules,
                        const std::map<std::string, std::string>& knobs) {
  const HashCounts counts = hashes(shape, schedules, knobs);
  return *std::max_element(counts.begin(), counts.end());
}

const std::map<std::string, std::string> kDeterministic = {{"HVRUN_DETERMINISTIC", "1"}};

}  // namespace

TEST_SUITE_BEGIN("host");

// Apart: each takes minutes where threads are watched for races.
TEST_CASE("a thousand schedules of 3 ranks give one hash, whatever is fused") {
  CHECK(most_hashes({3}, scaled(1000), kDeterministic) == 1);
}

TEST_CASE("a thousand schedules of 5 ranks give one hash, whatever is fused") {
  CHECK(most_hashes({5}, scaled(1000), kDeterministic) == 1);
}

TEST_CASE("a thousand schedules of 8 ranks give one hash, whatever is fused") {
  CHECK(most_hashes({8}, scaled(1000), kDeterministic) == 1);
}

TEST_CASE("five hundred schedules of 3 hosts give one hash, whatever is fused") {
  CHECK(most_hashes({1, 1, 1}, scaled(500), kDeterministic) == 1);
}

TEST_CASE("five hundred schedules of 5 hosts give one hash, whatever is fused") {
  CHECK(most_hashes({1, 1, 1, 1, 1}, scaled(500), kDeterministic) == 1);
}

TEST_CASE("five hundred schedules of 4 hosts of 2 ranks give one hash, whatever is fused") {
  CHECK(most_hashes({2, 2, 2, 2}, scaled(500), kDeterministic) == 1);
}

TEST_CASE("schedules of hosts that differ in size give one hash, whatever is fused") {
  for (const JobShape& shape : {JobShape{2, 1, 2}, JobShape{3, 3, 2}}) {
    INFO(name_of(shape));
    CHECK(most_hashes(shape, scaled(50), kDeterministic) == 1);
  }
}

TEST_CASE("a tree over hosts, taken at every size, gives one hash too") {
  auto knobs = kDeterministic;
  for (const char* way : {"cross:halving", "cross:doubling", "cross:tree"}) {
    INFO(way);
    knobs["HVRUN_ALGORITHM"] = way;
    CHECK(most_hashes({1, 1, 1, 1, 1}, scaled(20), knobs) == 1);
  }
}

// What the tests above would say of an algorithm that folds in an order of place. Reducescatter has
// no other than that of its own. Among twelve schedules are groups with both compressed tensors.
TEST_CASE("the same schedules over a ring give many hashes: the check can go red") {
  for (const JobShape& shape :
       {JobShape{1, 1, 1}, JobShape{1, 1, 1, 1, 1}, JobShape{1, 1, 1, 1, 1, 1, 1, 1}}) {
    INFO(name_of(shape));
    const HashCounts counts =
        hashes(shape, 12, {{"HVRUN_ALGORITHM", "allreduce:torus,cross:ring"}});
    CHECK(*std::max_element(counts.begin(), counts.begin() + kFirstCompressed) > 1);
    CHECK(counts[kLargeCompressed] > 1);
  }
}

// Another order from 64 KiB on: only what is fused with the large tensor is folded in it.
TEST_CASE("schedules over a tree that is taken up to a size give many hashes") {
  CHECK(most_hashes({1, 1, 1, 1, 1}, 3, {{"HVRUN_ALGORITHM", "cross:tree@64K"}}) > 1);
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

TEST_SUITE_END();
