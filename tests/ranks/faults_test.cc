// What happens to the others when a rank dies, leaves, or was never one of them.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "bench/ranks/blocking.h"
#include "src/net/socket.h"
#include "tests/ranks/collective_checks.h"

namespace hv::runtime {
namespace {

constexpr int kAsExpected = 42;

// Reduces again and again until that fails; what it failed with decides the exit code.
int reduce_until_loss(RankContext& context, const std::string& lost_rank) {
  std::vector<float> data(300000, 1);
  for (int round = 0;; ++round) {
    if (round == 3) context.at("under way");
    CollectiveRequest request = allreduce_of(ElementType::kFloat32, Reduction::kMax);
    auto* bytes = reinterpret_cast<std::byte*>(data.data());
    request.segments = {{bytes, bytes, static_cast<std::int64_t>(data.size())}};
    const Status status = context.run(std::move(request));
    if (status.ok()) continue;
    const bool names_it = status.code == StatusCode::kPeerLost &&
                          status.message.find(lost_rank + " ") != std::string::npos;
    if (!names_it) std::fprintf(stderr, "rank %d: %s\n", context.rank, status.message.c_str());
    return names_it ? kAsExpected : 1;
  }
}

void check_kill(const JobShape& shape, int victim, bool announced) {
  CAPTURE(name_of(shape));
  CAPTURE(victim);
  ForkedJob job(shape);
  const std::string name = "rank " + std::to_string(victim);
  job.start([&](RankContext& context) { return reduce_until_loss(context, name); });
  for (int rank = 0; rank < size_of(shape); ++rank) job.await_position(rank, "under way");
  const TimePoint killed = now();
  job.kill_rank(victim, announced);
  const auto results = job.wait();
  CHECK(seconds_since(killed) < 20);  // 2 s to notice; the rest is for a busy machine
  for (int rank = 0; rank < size_of(shape); ++rank) {
    const int result = results[static_cast<std::size_t>(rank)];
    if (rank == victim) {
      CHECK(WIFSIGNALED(result));
    } else {
      CHECK(WIFEXITED(result));
      CHECK(WEXITSTATUS(result) == kAsExpected);
    }
  }
}

}  // namespace

TEST_CASE("a killed rank is named to every other rank when the agent tells of it") {
  check_kill({2}, 1, true);
  check_kill({3}, 1, true);
  check_kill({2, 2}, 3, true);
  check_kill({1, 1}, 0, true);
}

TEST_CASE("a killed rank is named to every other rank even if no agent says a word") {
  check_kill({2}, 1, false);
  check_kill({3}, 0, false);
  check_kill({3}, 2, false);
  check_kill({2, 2}, 3, false);
  check_kill({1, 1}, 1, false);
}

TEST_CASE("a forked child that lives on does not hide its parent's death") {
  int life[2];  // the child's: it ends when nobody can write any more
  REQUIRE(::pipe(life) == 0);
  {
    ForkedJob job({1, 1});
    job.start([&life](RankContext& context) {
      if (context.rank == 1 && ::fork() == 0) {
        ::close(life[1]);
        char byte;
        ::_exit(static_cast<int>(::read(life[0], &byte, 1)));
      }
      return reduce_until_loss(context, "rank 1");
    });
    for (int rank = 0; rank < 2; ++rank) job.await_position(rank, "under way");
    const TimePoint killed = now();
    job.kill_rank(1, false);
    const auto results = job.wait();
    CHECK(seconds_since(killed) < 20);
    CHECK(WEXITSTATUS(results[0]) == kAsExpected);
  }
  for (const int fd : life) ::close(fd);
}

TEST_CASE("ranks with different keys refuse each other and say so") {
  const auto identities = identities_of({1, 1});
  InprocStoreHub hub(2);
  class OtherKey : public Store {
   public:
    explicit OtherKey(std::unique_ptr<Store> under) : under_(std::move(under)) {}
    Status put(const std::string& key, const std::string& value) override {
      return under_->put(key, value);
    }
    Status fence(std::chrono::milliseconds timeout) override { return under_->fence(timeout); }
    Status get(int rank, const std::string& key, std::string* value) override {
      return under_->get(rank, key, value);
    }
    Status job_key(JobKey* key) override {
      *key = random_key();
      return Status::success();
    }
    void report(const RankReport&) override {}
    int event_fd() const override { return -1; }
    bool next_event(PeerEvent*) override { return false; }

   private:
    std::unique_ptr<Store> under_;
  };
  const auto right = hub.store(0);
  OtherKey wrong(hub.store(1));
  FabricConfig config;
  config.addresses = {"127.0.0.1"};
  config.connect_timeout = std::chrono::milliseconds(3000);
  Status first, second;
  std::thread other(
      [&] { CHECK(connect_fabric(identities[1], wrong, config, &second) == nullptr); });
  CHECK(connect_fabric(identities[0], *right, config, &first) == nullptr);
  other.join();
  CHECK(first.message.find("rank 1") != std::string::npos);
  CHECK(second.message.find("rank 0") != std::string::npos);
  CHECK(second.message.find("key") != std::string::npos);
}

TEST_CASE("a rank that leaves in order is no loss to the others") {
  for (const JobShape& shape : {JobShape{2}, JobShape{1, 1}, JobShape{2, 2}}) {
    CAPTURE(name_of(shape));
    run_ranks(shape, {}, [](RankContext& context) {
      run_and_verify(context, make_random(context, 5));
      context.at("leaving");
      context.fabric.close(std::chrono::seconds(10));
      require(context.fabric.health().ok(),
              "health after everybody left: " + context.fabric.health().message);
    });
  }
}

TEST_CASE(
    "a loss marked on one rank of each host ends operations of every rank with the same words") {
  RunOptions options;
  options.closes = false;
  for (const JobShape& shape : {JobShape{3}, JobShape{2, 2}}) {
    CAPTURE(name_of(shape));
    run_ranks(shape, options, [](RankContext& context) {
      if (context.rank == 1) return;  // never takes part
      const auto barrier = context.backend.start({});
      if (context.rank == 0 || context.rank == 2)
        context.fabric.mark_lost(1, {StatusCode::kPeerLost, "rank 1 ended by signal 9 (Killed)"});
      const Status status = run_blocking(*barrier, context.fabric);
      require(status.code == StatusCode::kPeerLost, "the barrier failed");
      require(status.message == "rank 1 ended by signal 9 (Killed)", status.message);
    });
  }
}

}  // namespace hv::runtime
