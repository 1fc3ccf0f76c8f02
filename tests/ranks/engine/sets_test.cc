// Process sets at their limits, and gone while their data is on its way, with whole runtimes.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "tests/ranks/drawn.h"
#include "tests/ranks/engine/job.h"

using namespace hv;
using namespace hv::runtime;

namespace {

// The ranks of a job of 8 whose bits are set.
std::vector<std::int32_t> ranks_of(unsigned bits) {
  std::vector<std::int32_t> ranks;
  for (std::int32_t rank = 0; rank < 8; ++rank)
    if ((bits >> rank & 1u) != 0) ranks.push_back(rank);
  return ranks;
}

// One element, summed among the members of a set.
struct Sum {
  explicit Sum(std::string name) : name_(std::move(name)) {}
  Status start(Rank& rank, std::uint32_t set) {
    hvrun_request request = allreduce_request(name_.c_str(), &kOne, &value_, &value_);
    request.process_set = set;
    return rank.enqueue(request, &handle_);
  }
  float finish(Rank& rank) {
    const Status status = rank.wait(handle_);
    expect(status.ok(), name_ + ": " + status.message);
    return value_;
  }

 private:
  static constexpr std::int64_t kOne = 1;
  std::string name_;
  float value_ = 1;
  std::uint64_t handle_ = 0;
};

}  // namespace

// 63 sets with rank 0, beside that of all: subsets of 8 ranks have enough that differ.
TEST_CASE("a rank works in 64 sets at once, is refused one more, and has room when one has gone") {
  JobOptions options;
  options.shape = {5, 3};
  run_job(options, [](Rank& rank) {
    std::vector<unsigned> sets;  // members, by number - 1
    for (unsigned bits = 1; bits < 255 && sets.size() < 63; bits += 2) {
      rank.at("set " + std::to_string(sets.size() + 1));
      std::uint32_t number = 0;
      const Status added = rank.context.add_process_set(ranks_of(bits), &number);
      expect(added.ok(), added.message);
      expect(number == sets.size() + 1, "numbers ascend");
      sets.push_back(bits);
    }
    std::uint32_t more = 0;
    const Status refused = rank.context.add_process_set(ranks_of(129), &more);
    expect(refused.code == StatusCode::kArgument, "one more: " + refused.message);
    expect(refused.message.find("rank 0 is in 64 sets already") != std::string::npos,
           refused.message);

    rank.at("a sum in every set");
    std::vector<Sum> sums(sets.size(), Sum("w"));
    for (std::size_t i = 0; i < sets.size(); ++i) {
      if ((sets[i] >> rank.rank & 1u) == 0) continue;
      const Status status = sums[i].start(rank, static_cast<std::uint32_t>(i + 1));
      expect(status.ok(), status.message);
    }
    for (std::size_t i = 0; i < sets.size(); ++i)
      if ((sets[i] >> rank.rank & 1u) != 0)
        expect(sums[i].finish(rank) == static_cast<float>(ranks_of(sets[i]).size()), "its sum");

    rank.at("one goes, another comes");
    const Status removed = rank.context.remove_process_set(17);
    expect(removed.ok(), removed.message);
    const Status added = rank.context.add_process_set(ranks_of(129), &more);
    expect(added.ok(), added.message);
    if (rank.rank != 0 && rank.rank != 7) return;
    Sum last("w");
    expect(last.start(rank, more).ok() && last.finish(rank) == 2, "the sum of the new set");
  });
}

namespace {

constexpr int kSetTensors = 6;

// What a member of the set has in flight when it goes: tensors of 4 bytes to 4 MiB. Those that the
// members agreed on are whole, the others untouched.
struct InFlight {
  // The first `count` of them, in sizes that begin with another each round.
  InFlight(Rank& rank, std::uint32_t set, int round, std::size_t count) : handles(count) {
    for (int i = 0; i < static_cast<int>(count); ++i) {
      const auto index = static_cast<std::size_t>(i);
      counts[index] = std::int64_t{1} << (round + i) % 3 * 10;
      values[index].assign(static_cast<std::size_t>(counts[index]), 1.0f);
      names[index] = "w" + std::to_string(i);
      hvrun_request request = allreduce_request(names[index].c_str(), &counts[index],
                                                values[index].data(), values[index].data());
      request.process_set = set;
      const Status status = rank.enqueue(request, &handles[index]);
      expect(status.ok(), status.message);
    }
  }
  // Bit i: tensor i has come through.
  unsigned finish(Rank& rank) {
    unsigned through = 0;
    for (std::size_t i = 0; i < handles.size(); ++i) {
      const Status status = rank.wait(handles[i]);
      expect(status.ok() || status.code == StatusCode::kShutdown, status.message);
      const float expected = status.ok() ? 2.0f : 1.0f;
      expect(
          std::all_of(values[i].begin(), values[i].end(), [&](float v) { return v == expected; }),
          names[i] + " is neither the sum nor untouched: " + std::to_string(values[i].back()) +
              ", " + status.message);
      if (status.ok()) through |= 1u << i;
    }
    return through;
  }

  std::array<std::int64_t, kSetTensors> counts;
  std::array<std::vector<float>, kSetTensors> values;
  std::array<std::string, kSetTensors> names;
  std::vector<std::uint64_t> handles;
};

}  // namespace

// Lanes and cells are given to the next set at once: bytes of the one that goes must not meet it.
TEST_CASE("a set that goes while its data is between hosts ends alike on its members") {
  for (const JobShape& shape : {JobShape{2, 1}, JobShape{3}}) {
    CAPTURE(name_of(shape));
    JobOptions options;
    options.shape = shape;
    constexpr int kRounds = 40;
    std::array<std::array<std::atomic<unsigned>, 3>, kRounds> through{};
    const int rounds = 10 + scaled(kRounds - 10);
    run_job(options, [&](Rank& rank) {
      for (int round = 0; round < rounds; ++round) {
        rank.at("round " + std::to_string(round));
        std::uint32_t set = 0;
        const Status added = rank.context.add_process_set({0, 2}, &set);
        expect(added.ok(), added.message);
        if (rank.rank == 1) {
          const Status removed = rank.context.remove_process_set(set);
          expect(removed.ok(), removed.message);
          continue;
        }
        // Rank 2 never has some of rank 0's; and now and then one of them waits for the first.
        const int count = rank.rank == 0 ? kSetTensors : round % (kSetTensors + 1);
        InFlight tensors(rank, set, round, static_cast<std::size_t>(count));
        if (round % 4 == rank.rank && round % (kSetTensors + 1) > 0)
          expect(rank.wait(tensors.handles[0]).ok(), "the first");
        const Status removed = rank.context.remove_process_set(set);
        expect(removed.ok(), removed.message);
        through[static_cast<std::size_t>(round)][static_cast<std::size_t>(rank.rank)] =
            tensors.finish(rank);
      }
    });
    for (const auto& round : through) CHECK(round[0] == round[2]);
  }
}
