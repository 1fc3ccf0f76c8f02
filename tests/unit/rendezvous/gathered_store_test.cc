// Tests of how ranks meet that another launcher has started: over a stand-in for it, and by PMI's
// words.
// SPDX-License-Identifier: Apache-2.0
#include "src/rendezvous/gathered_store.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "src/base/clock.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"
#include "src/rendezvous/launcher_exchange.h"
#include "src/rendezvous/pmi_exchange.h"
#include "src/rendezvous/pmix_abi.h"
#if __has_include(<pmix_common.h>)
#include <pmix_common.h>
#endif

using namespace hv;

namespace {

constexpr std::chrono::milliseconds kGatherTimeout{20000};

// A PMI server for some ranks, as launchers have one: a thread for each rank's socket.
class PmiServer {
 public:
  explicit PmiServer(
      int size, std::string maxes = "cmd=maxes rc=0 kvsname_max=64 keylen_max=64 vallen_max=64")
      : size_(size), maxes_(std::move(maxes)) {
    for (int rank = 0; rank < size; ++rank) {
      int ends[2];
      REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
      sockets_.emplace_back(ends[1]);
      threads_.emplace_back([this, fd = ends[0]] { serve(UniqueFd(fd)); });
    }
  }
  ~PmiServer() {
    sockets_.clear();
    for (std::thread& thread : threads_) thread.join();
  }
  UniqueFd socket(int rank) { return std::move(sockets_[static_cast<std::size_t>(rank)]); }
  std::size_t longest_value() const { return longest_value_; }
  int goodbyes() const { return goodbyes_; }

 private:
  void serve(UniqueFd fd) {
    std::string unread;
    char bytes[500];
    for (ssize_t got; (got = ::read(fd.get(), bytes, sizeof bytes)) > 0;) {
      unread.append(bytes, static_cast<std::size_t>(got));
      for (std::size_t end; (end = unread.find('\n')) != std::string::npos;) {
        const std::string answer = answer_to(unread.substr(0, end)) + "\n";
        unread.erase(0, end + 1);
        if (::send(fd.get(), answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return;
      }
    }
  }
  std::string answer_to(const std::string& line) {
    std::unique_lock lock(mutex_);
    const std::string command = pmi_value(line, "cmd"), key = pmi_value(line, "key");
    if (command == "init") return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0";
    if (command == "get_maxes") return maxes_;
    if (command == "get_my_kvsname") return "cmd=my_kvsname rc=0 kvsname=space";
    if (command == "put") {
      longest_value_ = std::max(longest_value_, pmi_value(line, "value").size());
      values_[key] = pmi_value(line, "value");
      return "cmd=put_result rc=0 msg=success";
    }
    if (command == "get" && values_.count(key) == 0) return "cmd=get_result rc=-1 msg=unknown";
    if (command == "get") return "cmd=get_result rc=0 msg=success value=" + values_[key];
    if (command == "finalize") return ++goodbyes_, "cmd=finalize_ack rc=0";
    if (command != "barrier_in") return "cmd=what rc=-1";
    const int round = arrived_++ / size_;
    change_.notify_all();
    change_.wait(lock, [&] { return arrived_ >= (round + 1) * size_; });
    return "cmd=barrier_out rc=0";
  }

  const int size_;
  const std::string maxes_;
  std::vector<UniqueFd> sockets_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;  // guards the rest
  std::condition_variable change_;
  std::map<std::string, std::string> values_;
  std::size_t longest_value_ = 0;
  int arrived_ = 0, goodbyes_ = 0;
};

// Every rank at once, each with its own exchange.
template <class Act>
void on_all_ranks(PmiServer& server, int size, Act act) {
  std::vector<std::thread> threads;
  std::vector<std::string> failures(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      std::unique_ptr<Exchange> exchange;
      Status status = PmiExchange::open(server.socket(rank), rank, size, &exchange);
      if (status.ok()) status = act(std::shared_ptr<Exchange>(std::move(exchange)));
      failures[static_cast<std::size_t>(rank)] = status.message;
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) CHECK(failure == "");
}

std::string gathered_bytes(int rank, int round) {
  std::string bytes(static_cast<std::size_t>(rank * 301 + round * 7), '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + rank);
  return bytes;
}

}  // namespace

TEST_CASE("ranks give each other any bytes by PMI, in values no longer than it takes") {
  PmiServer server(4);
  on_all_ranks(server, 4, [](std::shared_ptr<Exchange> exchange) {
    for (int round = 0; round < 3; ++round) {
      std::vector<std::string> all;
      const Status status =
          exchange->gather(gathered_bytes(exchange->rank(), round), {kGatherTimeout}, &all);
      if (!status.ok()) return status;
      for (int rank = 0; rank < 4; ++rank)
        if (all.at(static_cast<std::size_t>(rank)) != gathered_bytes(rank, round))
          return Status{StatusCode::kContract, "other bytes came"};
    }
    return Status::success();
  });
  CHECK(server.longest_value() < 64);
  CHECK(server.goodbyes() == 4);
}

TEST_CASE("who meets has one key and one name, and what each puts stands after the next fence") {
  PmiServer server(3, "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024");
  std::mutex mutex;
  std::map<std::string, int> keys, jobs;
  on_all_ranks(server, 3, [&](std::shared_ptr<Exchange> exchange) {
    const int rank = exchange->rank();
    std::unique_ptr<Store> store;
    GatheredStore::Meeting meeting;
    Status status = GatheredStore::meet(exchange, rank == 1 ? "b" : "a", {kGatherTimeout}, 7 - rank,
                                        &store, &meeting);
    if (!status.ok()) return status;
    JobKey key;
    (void)store->job_key(&key);
    {
      const std::lock_guard lock(mutex);
      ++keys[hex(key.data(), key.size())];
      ++jobs[meeting.job_id];
    }
    if (meeting.epoch != 7) return Status{StatusCode::kContract, "not rank 0's epoch"};
    if (meeting.hosts != std::vector<std::string>{"a", "b", "a"})
      return Status{StatusCode::kContract, "other hosts"};
    (void)store->put("one", "of " + std::to_string(rank));
    (void)store->put("two", std::string(5000, static_cast<char>('a' + rank)));
    std::string value;
    if (store->get(0, "one", &value).ok()) return Status{StatusCode::kContract, "before the fence"};
    status = store->fence(kGatherTimeout);
    if (!status.ok()) return status;
    (void)store->put("one", "later");
    for (int other = 0; other < 3; ++other) {
      status = store->get(other, "one", &value);
      if (!status.ok() || value != "of " + std::to_string(other))
        return Status{StatusCode::kContract, "one: " + value};
      status = store->get(other, "two", &value);
      if (!status.ok() || value != std::string(5000, static_cast<char>('a' + other)))
        return Status{StatusCode::kContract, "two"};
    }
    if (store->get(1, "three", &value).code != StatusCode::kPeerLost ||
        store->get(3, "one", &value).code != StatusCode::kPeerLost)
      return Status{StatusCode::kContract, "what nobody has said"};
    status = store->fence(kGatherTimeout);
    if (status.ok()) status = store->get(2, "one", &value);
    return status.ok() && value != "later" ? Status{StatusCode::kContract, value} : status;
  });
  CHECK(keys.size() == 1);
  CHECK(keys.begin()->second == 3);
  CHECK(keys.begin()->first != std::string(64, '0'));
  CHECK(jobs.size() == 1);
}

TEST_CASE("a PMI server that says something else is named, and never waited for without end") {
  const auto reason = [](const std::string& maxes) {
    PmiServer server(1, maxes);
    std::unique_ptr<Exchange> exchange;
    return PmiExchange::open(server.socket(0), 0, 1, &exchange).message;
  };
  CHECK(reason("cmd=other").find("the launcher answers 'cmd=other' to 'cmd=get_maxes'") !=
        std::string::npos);
  CHECK(reason("cmd=maxes rc=1 vallen_max=64").find("rc=1") != std::string::npos);
  CHECK(reason("cmd=maxes vallen_max=3").find("no values") != std::string::npos);
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  ::close(ends[0]);
  std::unique_ptr<Exchange> exchange;
  CHECK_FALSE(PmiExchange::open(UniqueFd(ends[1]), 0, 2, &exchange).ok());
  PmiServer server(2);
  REQUIRE(PmiExchange::open(server.socket(0), 0, 2, &exchange).ok());
  std::vector<std::string> all;
  const Status late = exchange->gather("x", {std::chrono::milliseconds(30)}, &all);
  CHECK(late.message.find("not all have come in time") != std::string::npos);
  // The other one lets the server's barrier end.
  std::unique_ptr<Exchange> other;
  REQUIRE(PmiExchange::open(server.socket(1), 1, 2, &other).ok());
  (void)other->gather("y", {kGatherTimeout}, &all);
  exchange.reset();
  other.reset();
}

TEST_CASE("a rank that comes to the launcher's barrier by MPI alone is named with what to try") {
  PmiServer server(2);
  const UniqueFd by_mpi = server.socket(0);
  const std::string words = "cmd=barrier_in\n";
  REQUIRE(::write(by_mpi.get(), words.data(), words.size()) == static_cast<ssize_t>(words.size()));
  std::unique_ptr<Exchange> exchange;
  REQUIRE(PmiExchange::open(server.socket(1), 1, 2, &exchange).ok());
  std::vector<std::string> all;
  const std::string told = exchange->gather("x", {kGatherTimeout}, &all).message;
  CHECK(told.find("rank 1 on host ") == 0);
  CHECK(told.find("by PMI: rank 0 has not said who it is (the launcher has no key hv-0-0-0)") !=
        std::string::npos);
  CHECK(told.find("; try: HVRUN_BACKEND and HVRUN_MPI alike on all ranks (mpirun -x HVRUN_BACKEND "
                  "-x HVRUN_MPI)") != std::string::npos);
}

TEST_CASE("two ranks say that others have not come, where the launcher does not tell who") {
  static std::atomic<int> said{0};
  set_log_sink([](const std::string& line) {
    if (line.find("for one or more of 3 ranks to start libhvrun") != std::string::npos) ++said;
  });
  PmiServer server(3);
  std::unique_ptr<Exchange> exchanges[3];
  for (int rank = 0; rank < 3; ++rank)
    REQUIRE(PmiExchange::open(server.socket(rank), rank, 3, &exchanges[rank]).ok());
  const auto gather = [&](int rank, int stall) {
    std::vector<std::string> all;
    CHECK(exchanges[rank]
              ->gather("x", {kGatherTimeout, std::chrono::milliseconds(stall)}, &all)
              .ok());
  };
  std::thread first(gather, 0, 20), second(gather, 1, 20);
  const TimePoint limit = now() + kGatherTimeout;
  while (said < 2 && now() < limit) std::this_thread::yield();
  CHECK(said == 2);
  std::thread(gather, 2, 0).join();
  first.join();
  second.join();
  set_log_sink(nullptr);
}

TEST_CASE("only what a launcher has set is taken for a way to meet") {
  std::unique_ptr<Exchange> exchange;
  const auto open = [&exchange](const std::vector<std::string>& entries) {
    return open_launcher_exchange(Environment::from_entries(entries), {{kGatherTimeout}},
                                  &exchange);
  };
  CHECK(open({"PATH=/bin", "SLURM_NTASKS=4", "SLURM_JOB_ID=7"}).ok());
  CHECK(exchange == nullptr);
  const Status torn = open({"PMI_FD=7"});
  CHECK(torn.message.find("do not go together") != std::string::npos);
  const Status closed = open({"PMI_FD=999999", "PMI_RANK=0", "PMI_SIZE=2"});
  CHECK(closed.message.find("is not open") != std::string::npos);
  const Status two = open({"PMIX_NAMESPACE=x", "PMIX_RANK=0", "RANK=3"});
  CHECK(two.message.find("PMIX_RANK=0 and RANK=3 are of two launchers") != std::string::npos);
}

#ifdef PMIX_MAX_NSLEN
TEST_CASE("PMIx's types are laid out as its own header says") {
  CHECK(sizeof(pmix::Process) == sizeof(pmix_proc_t));
  CHECK(offsetof(pmix::Process, rank) == offsetof(pmix_proc_t, rank));
  CHECK(sizeof(pmix::Value) == sizeof(pmix_value_t));
  CHECK(offsetof(pmix::Value, data) == offsetof(pmix_value_t, data));
  CHECK(sizeof(pmix::Info) == sizeof(pmix_info_t));
  CHECK(offsetof(pmix::Info, flags) == offsetof(pmix_info_t, flags));
  CHECK(offsetof(pmix::Info, value) == offsetof(pmix_info_t, value));
  CHECK(sizeof(pmix::Bytes) == sizeof(pmix_byte_object_t));
  CHECK(pmix::kAnyRank == PMIX_RANK_WILDCARD);
  CHECK(pmix::kGlobal == PMIX_GLOBAL);
  CHECK(pmix::kBool == PMIX_BOOL);
  CHECK(pmix::kUint32 == PMIX_UINT32);
  CHECK(pmix::kByteObject == PMIX_BYTE_OBJECT);
  CHECK(std::string(pmix::kJobSize) == PMIX_JOB_SIZE);
  CHECK(std::string(pmix::kCollect) == PMIX_COLLECT_DATA);
}
#endif
