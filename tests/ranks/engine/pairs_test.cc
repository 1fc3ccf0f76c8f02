// Sends and receives in whole jobs. SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>

#include "tests/ranks/engine/job.h"
#include "tests/ranks/reference.h"

using namespace hv;
using namespace hv::runtime;

namespace {

hvrun_request send_to(int other, const char* name, const std::int64_t* count, void* data) {
  return pair_request(HVRUN_SEND, name, other, count, data);
}
hvrun_request receive_from(int other, const char* name, const std::int64_t* count, void* data) {
  return pair_request(HVRUN_RECEIVE, name, other, count, data);
}

const std::vector<JobShape> kPairShapes{{2}, {3}, {5}, {2, 2}, {1, 1, 1}, {1, 3, 2}};

// One transfer of a program; the same on every rank.
struct Transfer {
  int from, to;
  std::string name;
  ElementType type;
  std::int64_t count;
  std::uint64_t seed;
};

struct RunningTransfer {
  const Transfer* transfer;
  bool sends;
  Bytes data;
  std::uint64_t handle;
};

std::vector<Transfer> plan(std::mt19937_64& random, int size) {
  std::vector<Transfer> transfers;
  for (int i = 0; i < 60; ++i) {
    Transfer next;
    next.from = static_cast<int>(random() % static_cast<std::uint64_t>(size));
    next.to = static_cast<int>(random() % static_cast<std::uint64_t>(size));
    if (next.from == next.to) continue;
    next.name = "t" + std::to_string(random() % 20);
    next.type = all_types()[random() % all_types().size()];
    next.count = static_cast<std::int64_t>(random() % (random() % 6 == 0 ? 400000 : 50));
    next.seed = random();
    const bool is_there = std::any_of(transfers.begin(), transfers.end(), [&](const Transfer& one) {
      return one.from == next.from && one.to == next.to && one.name == next.name;
    });
    if (!is_there) transfers.push_back(std::move(next));
  }
  return transfers;
}

void carry_out(Rank& rank, const std::vector<Transfer>& transfers, std::mt19937_64& own) {
  std::vector<std::unique_ptr<RunningTransfer>> all;
  for (const Transfer& transfer : transfers) {
    if (transfer.from != rank.rank && transfer.to != rank.rank) continue;
    const bool sends = transfer.from == rank.rank;
    Bytes data =
        random_elements(transfer.type, static_cast<std::size_t>(transfer.count), transfer.seed);
    if (!sends) std::fill(data.begin(), data.end(), std::byte{0});
    all.push_back(
        std::make_unique<RunningTransfer>(RunningTransfer{&transfer, sends, std::move(data), 0}));
  }
  std::shuffle(all.begin(), all.end(), own);
  for (auto& one : all) {
    const Transfer& transfer = *one->transfer;
    const Status status =
        rank.enqueue(pair_request(one->sends ? HVRUN_SEND : HVRUN_RECEIVE, transfer.name.c_str(),
                                  one->sends ? transfer.to : transfer.from, &transfer.count,
                                  one->data.data(), static_cast<hvrun_type>(transfer.type)),
                     &one->handle);
    expect(status.ok(), status.message);
  }
  std::shuffle(all.begin(), all.end(), own);
  for (auto& one : all) {
    rank.at("waiting for " + one->transfer->name);
    const Status status = rank.wait(one->handle);
    expect(status.ok(), status.message);
    rank.context.release(one->handle);
    if (one->sends) {
      std::fill(one->data.begin(), one->data.end(), std::byte{0xee});  // not needed any more
      continue;
    }
    const Bytes expected = random_elements(
        one->transfer->type, static_cast<std::size_t>(one->transfer->count), one->transfer->seed);
    expect(one->data == expected, one->transfer->name + " has other bytes");
  }
}

// A rank that shuts down ends what others have not completed: nobody does before all are done.
void run_pairs(const JobOptions& options, const std::function<void(Rank&)>& body) {
  run_job(options, [&](Rank& rank) {
    body(rank);
    const Status status = rank.run(barrier_request());
    expect(status.ok(), status.message);
  });
}

}  // namespace

TEST_CASE("a tensor goes from rank to rank, round and back, whatever its size") {
  for (const JobShape& shape : kPairShapes) {
    CAPTURE(name_of(shape));
    JobOptions options;
    options.shape = shape;
    run_pairs(options, [](Rank& rank) {
      const int next = (rank.rank + 1) % rank.size, last = (rank.rank + rank.size - 1) % rank.size;
      for (const std::int64_t count : {0, 1, 1000, 1000003}) {
        std::vector<std::int32_t> mine(static_cast<std::size_t>(count), rank.rank + 1);
        std::vector<std::int32_t> theirs(mine.size());
        std::uint64_t sent = 0, received = 0;
        rank.at("round of " + std::to_string(count));
        expect(rank.enqueue(send_to(next, "x", &count, mine.data()), &sent).ok(), "send");
        expect(rank.enqueue(receive_from(last, "x", &count, theirs.data()), &received).ok(),
               "receive");
        for (const std::uint64_t handle : {received, sent}) {
          const Status status = rank.wait(handle);
          expect(status.ok(), status.message);
          rank.context.release(handle);
        }
        expect(theirs == std::vector<std::int32_t>(mine.size(), last + 1), "content");
      }
    });
  }
}

TEST_CASE("random transfers, in another order on each rank, beside collectives") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    JobOptions options;
    options.shape = kPairShapes[seed % kPairShapes.size()];
    options.kind = seed % 2 == 0 ? RankKind::kThreadsMemfd : RankKind::kThreadsOneMapping;
    run_pairs(options, [seed](Rank& rank) {
      std::mt19937_64 shared(seed), own(seed * 100 + static_cast<std::uint64_t>(rank.rank));
      for (int window = 0; window < 4; ++window) {
        const std::int64_t count = 5000;
        std::vector<std::int32_t> ones(5000, 1);
        std::uint64_t sum = 0;
        expect(rank.enqueue(allreduce_request("sum", &count, ones.data(), ones.data(), HVRUN_INT32),
                            &sum)
                   .ok(),
               "sum");
        const std::vector<Transfer> transfers = plan(shared, rank.size);
        carry_out(rank, transfers, own);
        expect(rank.wait(sum).ok() && ones[4999] == rank.size, "sum");
        rank.context.release(sum);
      }
    });
  }
}

TEST_CASE("thousands are on their way at once, and the last may be asked for first") {
  JobOptions options;
  options.shape = {1, 1};
  run_pairs(options, [](Rank& rank) {
    constexpr int kCount = 1000;
    const std::int64_t one = 1;
    std::vector<std::int32_t> values(kCount);
    std::vector<std::uint64_t> handles(kCount);
    for (int i = 0; i < kCount; ++i) {
      if (rank.rank == 0) {
        values[static_cast<std::size_t>(i)] = i;
        const std::string name = "n" + std::to_string(i);
        expect(rank.enqueue(send_to(1, name.c_str(), &one, &values[static_cast<std::size_t>(i)]),
                            &handles[static_cast<std::size_t>(i)])
                   .ok(),
               "send");
      } else {
        std::int32_t value = -1;
        const int which = kCount - 1 - i;
        const Status status =
            rank.run(receive_from(0, ("n" + std::to_string(which)).c_str(), &one, &value));
        expect(status.ok(), status.message);
        expect(value == which, "value");
      }
    }
    if (rank.rank == 0)
      for (const std::uint64_t handle : handles) expect(rank.wait(handle).ok(), "sent");
  });
}

TEST_CASE("another type or shape than the sender's is an error on both, in words, then it works") {
  for (const JobShape& shape : {JobShape{2}, JobShape{1, 1}}) {
    JobOptions options;
    options.shape = shape;
    run_pairs(options, [](Rank& rank) {
      std::int32_t values[4] = {1, 2, 3, 4};
      const std::int64_t count = rank.rank == 0 ? 3 : 4, three = 3;
      const int other = 1 - rank.rank;
      const Status status = rank.run(rank.rank == 0 ? send_to(other, "x", &count, values)
                                                    : receive_from(other, "x", &count, values));
      expect(status.code == StatusCode::kMismatch, status.message);
      expect(status.message.find("the sender has int32 [3], the receiver expects int32 [4]") !=
                 std::string::npos,
             status.message);
      const char* const own = rank.rank == 0 ? "send 'x' to rank 1: " : "receive 'x' from rank 0: ";
      expect(status.message.find(own) == 0, status.message);
      const Status again = rank.run(rank.rank == 0 ? send_to(other, "x", &three, values)
                                                   : receive_from(other, "x", &three, values));
      expect(again.ok(), again.message);
    });
  }
}

TEST_CASE("ranks that cannot be meant are refused at once, in a set they are places") {
  JobOptions options;
  options.shape = {3};
  run_pairs(options, [](Rank& rank) {
    const std::int64_t one = 1;
    std::int32_t value = rank.rank;
    std::uint64_t handle = 0;
    const Status self = rank.enqueue(send_to(rank.rank, "x", &one, &value), &handle);
    expect(self.code == StatusCode::kArgument, self.message);
    expect(self.message.find("is this rank itself") != std::string::npos, self.message);
    expect(rank.enqueue(send_to(3, "x", &one, &value), &handle).code == StatusCode::kArgument, "3");
    std::uint32_t set = 0;
    expect(rank.context.add_process_set({1, 2}, &set).ok(), "add");
    if (rank.rank == 0) return;
    hvrun_request request =
        rank.rank == 1 ? send_to(1, "x", &one, &value) : receive_from(0, "x", &one, &value);
    request.process_set = set;
    const Status status = rank.run(request);
    expect(status.ok(), status.message);
    expect(value == 1, "rank 1 is place 0");
    request.root = 2;
    expect(rank.enqueue(request, &handle).code == StatusCode::kArgument, "place 2");
  });
}

TEST_CASE("a set's removal ends what nobody answers, and harms no transfer of another") {
  for (const JobShape& shape : {JobShape{3}, JobShape{1, 2}}) {
    JobOptions options;
    options.shape = shape;
    run_pairs(options, [](Rank& rank) {
      for (int round = 0; round < 10; ++round) {
        std::uint32_t set = 0;
        expect(rank.context.add_process_set({0, 1}, &set).ok(), "add");
        const std::int64_t many = 300000, one = 1;
        std::vector<std::int32_t> big(300000, rank.rank), kept(300000, rank.rank);
        std::int32_t value = 0;
        std::uint64_t lone = 0, cut = 0, whole = 0;
        if (rank.rank < 2) {
          const int other = 1 - rank.rank;
          // Nobody sends that; the large one may be on its way when the set goes.
          hvrun_request request = receive_from(other, "never", &one, &value);
          request.process_set = set;
          expect(rank.enqueue(request, &lone).ok(), "receive");
          request = rank.rank == 0 ? send_to(other, "cut", &many, big.data())
                                   : receive_from(other, "cut", &many, big.data());
          request.process_set = set;
          expect(rank.enqueue(request, &cut).ok(), "cut");
          request = rank.rank == 0 ? send_to(other, "whole", &many, kept.data())
                                   : receive_from(other, "whole", &many, kept.data());
          expect(rank.enqueue(request, &whole).ok(), "whole");
        }
        expect(rank.context.remove_process_set(set).ok(), "remove");
        if (rank.rank == 2) continue;
        expect(rank.wait(lone).code == StatusCode::kShutdown, "ended by the removal");
        const Status large = rank.wait(cut);
        expect(large.ok() || large.code == StatusCode::kShutdown, large.message);
        const Status status = rank.wait(whole);
        expect(status.ok(), status.message);
        expect(kept == std::vector<std::int32_t>(300000, 0), "content");
        for (const std::uint64_t handle : {lone, cut, whole}) rank.context.release(handle);
      }
    });
  }
}
