// Tests of the exchange through rank 0, and of who the tasks of a Slurm step are.
// SPDX-License-Identifier: Apache-2.0
#include "src/rendezvous/star_exchange.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>

#include <mutex>
#include <set>
#include <thread>

#include "src/base/log.h"
#include "src/net/socket.h"
#include "src/rendezvous/slurm_step.h"

using namespace hv;

namespace {

const WaitLimits kStarTimeout{std::chrono::seconds(20)};

std::vector<std::string> here() { return {"127.0.0.1"}; }

// A port that was free a moment ago.
std::uint16_t free_port() {
  UniqueFd holder;
  std::uint16_t port = 0;
  REQUIRE(hold_tcp_port(0, &holder, &port).ok());
  return port;
}

StarTerms star_terms(int rank, int size, std::vector<std::uint16_t> ports) {
  return {rank, size, "7.0", std::move(ports), here};
}

StarKey key_of(unsigned char seed) {
  const auto give = [seed](int, TimePoint, JobKey* key) {
    key->fill(seed);
    return Status::success();
  };
  return {give, give};
}

std::string bytes_of(int rank, int round) {
  return std::string(static_cast<std::size_t>(rank * 40000 + round), static_cast<char>('a' + rank));
}

}  // namespace

TEST_CASE("all ranks give each other any bytes through rank 0, whatever else connects there") {
  const std::vector<std::uint16_t> ports{free_port(), free_port()};
  // Somebody else has the first port.
  UniqueFd other;
  std::uint16_t bound = 0;
  REQUIRE(listen_tcp(ports[0], &other, &bound).ok());
  std::mutex mutex;
  std::vector<std::string> failures;
  const auto be_rank = [&](int rank) {
    std::unique_ptr<Exchange> exchange;
    Status status = open_star(star_terms(rank, 4, ports), key_of(3), kStarTimeout, &exchange);
    for (int round = 0; round < 3 && status.ok(); ++round) {
      std::vector<std::string> all;
      status = exchange->gather(bytes_of(rank, round), kStarTimeout, &all);
      for (int one = 0; one < 4 && status.ok(); ++one)
        if (all.at(static_cast<std::size_t>(one)) != bytes_of(one, round))
          status = {StatusCode::kContract, "other bytes came"};
    }
    const std::lock_guard lock(mutex);
    if (!status.ok()) failures.push_back(status.message);
  };
  std::vector<std::thread> ranks;
  for (int rank = 3; rank >= 0; --rank) ranks.emplace_back(be_rank, rank);
  // Takes the connections of the first port, and hangs up.
  std::thread stranger([&] {
    for (;;) {
      pollfd wait{other.get(), POLLIN, 0};
      if (::poll(&wait, 1, 300) <= 0) return;
      UniqueFd(::accept(other.get(), nullptr, nullptr)).reset();
    }
  });
  for (std::thread& rank : ranks) rank.join();
  stranger.join();
  for (const std::string& failure : failures) CHECK(failure == "");
}

TEST_CASE("without the key nobody gets in, and who has not come is named") {
  const std::vector<std::uint16_t> ports{free_port()};
  Status first, enemy;
  std::unique_ptr<Exchange> exchanges[2];
  std::thread host([&] {
    first = open_star(star_terms(0, 2, ports), key_of(3), {std::chrono::milliseconds(600)},
                      &exchanges[0]);
  });
  enemy = open_star(star_terms(1, 2, ports), key_of(4), {std::chrono::milliseconds(500)},
                    &exchanges[1]);
  host.join();
  CHECK(enemy.message.find("not rank 0 of this step") != std::string::npos);
  CHECK(first.message.find("rank 1") != std::string::npos);
}

TEST_CASE("those who say nothing hold up nobody, neither in coming in nor at the end") {
  const std::vector<std::uint16_t> ports{free_port()};
  const WaitLimits shorter{std::chrono::seconds(5)};  // than what a silent one is given
  std::unique_ptr<Exchange> first, second;
  Status statuses[2];
  std::thread host(
      [&] { statuses[0] = open_star(star_terms(0, 2, ports), key_of(3), shorter, &first); });
  std::vector<UniqueFd> silent;
  while (silent.size() < 100) {
    UniqueFd socket;
    const auto address = *SocketAddress::parse("127.0.0.1", ports[0]);
    if (start_connect(address, &socket).ok()) {
      pollfd wait{socket.get(), POLLOUT, 0};
      ::poll(&wait, 1, 1000);
      if (finish_connect(socket.get(), address).ok()) silent.push_back(std::move(socket));
    }
  }
  statuses[1] = open_star(star_terms(1, 2, ports), key_of(3), shorter, &second);
  host.join();
  CHECK(statuses[0].message == "");
  CHECK(statuses[1].message == "");
  // The oldest had to go for the others.
  char byte = 0;
  CHECK(::recv(silent[0].get(), &byte, 1, MSG_DONTWAIT) == 0);
}

TEST_CASE("many ranks that come at once all get in, however long the key takes") {
  constexpr int kRanks = 150;
  const std::vector<std::uint16_t> ports{free_port()};
  StarKey slow = key_of(3);
  slow.of_first = [quick = slow.of_first](int socket, TimePoint deadline, JobKey* key) {
    ::poll(nullptr, 0, 5);  // as long as munge takes
    return quick(socket, deadline, key);
  };
  std::mutex mutex;
  std::vector<std::string> failures;
  const auto be_rank = [&](int rank) {
    std::unique_ptr<Exchange> exchange;
    Status status = open_star(star_terms(rank, kRanks, ports), slow, kStarTimeout, &exchange);
    std::vector<std::string> all;
    if (status.ok()) status = exchange->gather(std::to_string(rank), kStarTimeout, &all);
    const std::lock_guard lock(mutex);
    if (!status.ok()) failures.push_back(status.message);
    if (status.ok() && all.at(kRanks - 1) != std::to_string(kRanks - 1))
      failures.push_back("other");
  };
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) ranks.emplace_back(be_rank, rank);
  for (std::thread& rank : ranks) rank.join();
  for (const std::string& failure : failures) CHECK(failure == "");
}

namespace {
std::mutex warning_mutex;
std::string warning;  // guarded by warning_mutex
void keep_warning(const std::string& line) {
  const std::lock_guard lock(warning_mutex);
  warning += line;
}
bool has_warned(const std::string& words) {
  const std::lock_guard lock(warning_mutex);
  return warning.find(words) != std::string::npos;
}
}  // namespace

TEST_CASE("who is missing is named while the others wait for it") {
  const std::vector<std::uint16_t> ports{free_port()};
  const WaitLimits naming{kStarTimeout.timeout, std::chrono::milliseconds(20)};
  set_log_sink(keep_warning);
  std::unique_ptr<Exchange> exchanges[3];
  const auto open = [&](int rank) {
    CHECK(open_star(star_terms(rank, 3, ports), key_of(3), naming, &exchanges[rank]).ok());
  };
  const auto await_warning = [](const std::string& words) {
    const TimePoint limit = now() + kStarTimeout.timeout;
    while (!has_warned(words) && now() < limit) std::this_thread::yield();
    CHECK(has_warned(words));
  };
  std::thread second(open, 2);
  await_warning("rank 2 has waited 20 ms for rank 0 to start libhvrun");
  std::thread first(open, 0);
  second.join();
  await_warning("rank 0 has waited 20 ms for rank");
  std::thread(open, 1).join();
  first.join();
  std::vector<std::string> all[2];
  std::thread gathering([&] { CHECK(exchanges[0]->gather("a", naming, &all[0]).ok()); });
  std::thread early([&] { CHECK(exchanges[1]->gather("b", naming, &all[1]).ok()); });
  await_warning("for rank 2, and perhaps others, to start");
  std::vector<std::string> last;
  CHECK(exchanges[2]->gather("c", naming, &last).ok());
  gathering.join();
  early.join();
  set_log_sink(nullptr);
  CHECK(last == std::vector<std::string>{"a", "b", "c"});
  CHECK(all[0] == last);
}

TEST_CASE("ranks that srun gives a GPU each are told what to change") {
  const auto words = [](const std::vector<std::string>& entries) {
    return hidden_gpus(Environment::from_entries(entries));
  };
  const std::string told = words({"SLURM_GPUS_ON_NODE=4", "CUDA_VISIBLE_DEVICES=0"});
  CHECK(told.find("shows each rank 1 of the 4 GPUs") != std::string::npos);
  CHECK(told.find("--gpus-per-node") != std::string::npos);
  CHECK(words({"SLURM_GPUS_ON_NODE=8", "CUDA_VISIBLE_DEVICES=GPU-1,GPU-2"}) != "");
  CHECK(words({"SLURM_GPUS_ON_NODE=2", "CUDA_VISIBLE_DEVICES=0,1"}) == "");
  CHECK(words({"SLURM_GPUS_ON_NODE=2", "SLURM_GPUS_PER_TASK=1"}) == "");
  CHECK(words({"CUDA_VISIBLE_DEVICES=0"}) == "");
}

TEST_CASE("a rank that leaves is named to those who wait for it") {
  const std::vector<std::uint16_t> ports{free_port()};
  std::unique_ptr<Exchange> first, second;
  std::thread host(
      [&] { (void)open_star(star_terms(0, 2, ports), key_of(3), kStarTimeout, &first); });
  REQUIRE(open_star(star_terms(1, 2, ports), key_of(3), kStarTimeout, &second).ok());
  host.join();
  REQUIRE(first != nullptr);
  second.reset();
  std::vector<std::string> all;
  const Status status = first->gather("x", kStarTimeout, &all);
  CHECK(status.code == StatusCode::kPeerLost);
  CHECK(status.message.find("rank 1: it has left") != std::string::npos);
}

TEST_CASE("a node expression's first name") {
  CHECK(first_node("node1") == "node1");
  CHECK(first_node("node1,node2") == "node1");
  CHECK(first_node("n[01-16,20],gpu1") == "n01");
  CHECK(first_node("n[7]") == "n7");
  CHECK(first_node("gpu[1-2]x[a,b]y,other") == "gpu1xay");
  CHECK(first_node("n[01") == "n01");
  CHECK(first_node("") == "");
}

TEST_CASE("only the tasks of a step of several are taken for such") {
  const auto step = [](std::vector<std::string> more) {
    std::vector<std::string> entries{"SLURM_JOB_ID=7", "SLURM_STEP_ID=2", "SLURM_PROCID=1",
                                     "SLURM_STEP_NUM_TASKS=4", "SLURM_STEP_NODELIST=n[3-4]"};
    entries.insert(entries.begin(), more.begin(), more.end());
    return slurm_step(Environment::from_entries(entries));
  };
  const auto plain = step({});
  REQUIRE(plain);
  CHECK(plain->rank == 1);
  CHECK(plain->size == 4);
  CHECK(plain->name == "7.2");
  CHECK(plain->first_node == "n3");
  for (const char* other :
       {"SLURM_STEP_NUM_TASKS=1", "SLURM_STEP_NUM_TASKS=", "SLURM_PROCID=4", "SLURM_PROCID=-1",
        "SLURM_JOB_ID=../x", "SLURM_STEP_ID=", "SLURM_STEP_NODELIST="})
    CHECK_FALSE(step({other}));
  CHECK_FALSE(slurm_step(
      Environment::from_entries({"SLURM_JOB_ID=7", "SLURM_PROCID=0", "SLURM_NTASKS=4"})));
}

TEST_CASE("every task of a step knows the same ports, of the range if there is one") {
  const auto any = ports_of_step("7.2", {});
  CHECK(any == ports_of_step("7.2", {}));
  CHECK(any.size() == 16);
  CHECK(std::set<std::uint16_t>(any.begin(), any.end()).size() == 16);
  CHECK(any != ports_of_step("7.3", {}));
  const auto few = ports_of_step("7.2", *parse_port_range("30000-30002"));
  CHECK(std::set<std::uint16_t>(few.begin(), few.end()) ==
        std::set<std::uint16_t>{30000, 30001, 30002});
}
