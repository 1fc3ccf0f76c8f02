// What a whole job says of a tensor that some ranks never enqueue, and how that ends it.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <array>
#include <latch>
#include <mutex>
#include <thread>

#include "src/base/log.h"
#include "tests/ranks/engine/gpu.h"
#include "tests/ranks/engine/job.h"

using namespace hv;
using namespace hv::runtime;

namespace {

std::mutex log_mutex;  // guards log_text
std::string log_text;

// Collects what the runtime logs, as long as it lives.
struct LogCapture {
  LogCapture() {
    const std::lock_guard lock(log_mutex);
    log_text.clear();
    set_log_sink([](const std::string& line) {
      const std::lock_guard guard(log_mutex);
      log_text += line;
    });
  }
  ~LogCapture() { set_log_sink(nullptr); }
  std::string text() const {
    const std::lock_guard lock(log_mutex);
    return log_text;
  }
};

// Until the runtime has said so; its threads drive it meanwhile.
void await(Rank& rank, const LogCapture& log, const char* words) {
  rank.at(std::string("waiting for: ") + words);
  while (log.text().find(words) == std::string::npos) std::this_thread::yield();
}

JobOptions with(const JobShape& shape, const char* warning, const char* end) {
  JobOptions options;
  options.shape = shape;
  options.environment.set("HVRUN_STALL_SECONDS", warning);
  options.environment.set("HVRUN_STALL_SHUTDOWN_SECONDS", end);
  return options;
}

// Of an operation that ended by a stall: the words behind its own name, if it is another's.
std::string stall_of(const Status& status) {
  expect(status.code == StatusCode::kStalled, "not stalled: " + status.message);
  const std::size_t waited = status.message.find(" has waited ");
  expect(waited != std::string::npos, "no tensor waited: " + status.message);
  return status.message.substr(status.message.rfind("tensor '", waited));
}

bool has_reported(InprocStoreHub& hub, const std::string& name, std::uint32_t missing) {
  for (const auto& [by, stall] : hub.reported_stalls())
    if (stall.name == name && stall.missing == std::vector<std::uint32_t>{missing}) return true;
  return false;
}

}  // namespace

// A rank has a moment to answer; one that is too slow for it is asked again with the next warning.
TEST_CASE("a stall says where the missing rank stands") {
  for (const JobShape& shape : {JobShape{3}, JobShape{1, 2}, JobShape{2, 1}}) {
    CAPTURE(name_of(shape));
    const LogCapture log;
    run_job(with(shape, "0.1", "0"), [&](Rank& rank) {
      const std::int64_t one = 1;
      float value = 1;
      expect(rank.run(allreduce_request("v", &one, &value, &value)).ok(), "before it");
      if (rank.rank == 1) {
        // Before that it may be told that rank 2 is not there either.
        await(rank, log, "for rank 1; it is ready on the other 2 of 3 ranks");
        await(rank, log, "rank 1 last enqueued allreduce 'v' ");
        await(rank, log, " s ago, which is complete");
      }
      expect(rank.run(allreduce_request("w", &one, &value, &value)).ok(), "after it");
    });
  }
}

TEST_CASE("a rank that waits for something else says so") {
  const LogCapture log;
  run_job(with({2}, "0.1", "0"), [&](Rank& rank) {
    const std::int64_t one = 1;
    float first = 1, second = 1;
    const bool is_first = rank.rank == 0;
    std::uint64_t handle = 0;
    expect(
        rank.enqueue(allreduce_request(is_first ? "a" : "b", &one, &first, &first), &handle).ok(),
        "enqueue");
    await(rank, log, "rank 1 last enqueued allreduce 'b' ");
    await(rank, log, "rank 0 last enqueued allreduce 'a' ");
    await(rank, log, " s ago, which is not complete");
    expect(rank.run(allreduce_request(is_first ? "b" : "a", &one, &second, &second)).ok(), "other");
    expect(rank.wait(handle).ok(), "own");
  });
}

TEST_CASE("the launcher hears of tensors that wait for different ranks") {
  const LogCapture log;
  run_job(with({3}, "0.1", "0"), [&](Rank& rank) {
    const std::int64_t one = 1;
    std::array<float, 2> values{};
    std::array<std::uint64_t, 2> handles{};
    const auto enqueue = [&](std::size_t i) {
      float* const value = &values[i];
      const char* const name = i == 0 ? "a" : "b";
      expect(rank.enqueue(allreduce_request(name, &one, value, value), &handles[i]).ok(), name);
    };
    for (const int i : {0, 1})
      if (rank.rank != i + 1) enqueue(static_cast<std::size_t>(i));
    rank.at("waiting for both to be reported");
    while (!has_reported(rank.hub, "a", 1) || !has_reported(rank.hub, "b", 2))
      std::this_thread::yield();
    if (rank.rank > 0) enqueue(static_cast<std::size_t>(rank.rank - 1));
    for (const std::uint64_t handle : handles) expect(rank.wait(handle).ok(), "wait");
  });
}

TEST_CASE("a stall is told before it ends the job, though warnings come later than that") {
  const LogCapture log;
  run_job(with({2}, "60", "4"), [&](Rank& rank) {
    const std::int64_t one = 1;
    float value = 1;
    if (rank.rank == 0) stall_of(rank.run(allreduce_request("v", &one, &value, &value)));
    rank.at("waiting for 'v' to be reported");
    while (!has_reported(rank.hub, "v", 1)) std::this_thread::yield();
  });
  CHECK(log.text().find("HVRUN_STALL_SHUTDOWN_SECONDS ends the job at 4 s") != std::string::npos);
}

TEST_CASE("tensors that wait for the same rank are told in one line, with what would end it") {
  const LogCapture log;
  std::array<std::string, 5> names{"a", "b", "c", "d", "e"};
  run_job(with({2}, "0.1", "0"), [&](Rank& rank) {
    const std::int64_t one = 1;
    std::array<float, 5> values{};
    std::array<std::uint64_t, 5> handles{};
    if (rank.rank == 1) await(rank, log, " more ('");
    for (std::size_t i = 0; i < names.size(); ++i) {
      float* const value = &values[i];
      expect(
          rank.enqueue(allreduce_request(names[i].c_str(), &one, value, value), &handles[i]).ok(),
          "enqueue");
    }
    for (const std::uint64_t handle : handles) expect(rank.wait(handle).ok(), "wait");
  });
  CHECK(log.text().find("; they are ready on the other 1 of 2 ranks") != std::string::npos);
  CHECK(log.text().find("HVRUN_STALL_SHUTDOWN_SECONDS=300 would") != std::string::npos);
}

TEST_CASE("a stall ends the job in the same words for all") {
  for (const JobShape& shape : {JobShape{3}, JobShape{1, 2}, JobShape{2, 1}}) {
    CAPTURE(name_of(shape));
    const LogCapture log;
    std::array<std::string, 3> words;
    std::latch ended{2};
    // Real GPUs' communicators take their time to be made.
    run_job(with(shape, "0", Gpu::is_real() ? "15" : "0.4"), [&](Rank& rank) {
      const std::int64_t one = 1;
      float value = 1;
      expect(rank.run(allreduce_request("v", &one, &value, &value)).ok(), "before it");
      if (rank.rank == 1) ended.wait();
      const char* name = rank.rank == 1 ? "late" : "w";
      const Status status = rank.run(allreduce_request(name, &one, &value, &value));
      if (rank.rank != 1) ended.count_down();
      words[static_cast<std::size_t>(rank.rank)] = stall_of(status);
    });
    CHECK(words[0].find("tensor 'w' has waited") == 0);
    CHECK(words[0].find("for rank 1; it is ready on the other 2 of 3 ranks") != std::string::npos);
    CHECK(words[0].find(": rank 1 last enqueued allreduce 'v' ") != std::string::npos);
    CHECK(words[0] == words[1]);
    CHECK(words[0] == words[2]);
  }
}

TEST_CASE("two ranks that wait for each other end") {
  const LogCapture log;
  run_job(with({2}, "0", "0.4"), [&](Rank& rank) {
    const std::int64_t one = 1;
    float value = 1;
    const char* name = rank.rank == 0 ? "a" : "b";
    const Status status = rank.run(allreduce_request(name, &one, &value, &value));
    const bool is_own = stall_of(status).find(std::string("tensor '") + name) == 0;
    expect(!is_own || status.message == stall_of(status), "not told twice: " + status.message);
  });
}

TEST_CASE("a stall in a process set ends the whole job, those that are not in it too") {
  std::array<std::string, 3> words;
  const LogCapture log;
  std::latch ended{1};
  run_job(with({3}, "0", "0.4"), [&](Rank& rank) {
    const std::int64_t one = 1;
    float value = 1;
    std::uint32_t set = 0;
    expect(rank.context.add_process_set({1, 2}, &set).ok(), "a set");
    hvrun_request request = allreduce_request("w", &one, &value, &value);
    if (rank.rank == 1) {
      request.process_set = set;
    } else {
      ended.wait();
      request.name = "late";
    }
    const Status status = rank.run(request);
    if (rank.rank == 1) ended.count_down();
    words[static_cast<std::size_t>(rank.rank)] = stall_of(status);
  });
  CHECK(words[1].find("tensor 'w' has waited") == 0);
  CHECK(words[0] == words[1]);
  CHECK(words[0] == words[2]);
}

TEST_CASE("a send or receive whose other rank never comes is told and counted, and ends the job") {
  for (const bool sends : {false, true}) {
    for (const JobShape& shape : {JobShape{2}, JobShape{1, 1}}) {
      CAPTURE(sends);
      CAPTURE(name_of(shape));
      const LogCapture log;
      std::array<std::string, 2> words;
      std::array<std::uint64_t, 2> warnings{};
      std::latch ended{1};
      run_job(with(shape, "0.1", "0.4"), [&](Rank& rank) {
        const std::int64_t one = 1;
        float value = 1;
        hvrun_request request = allreduce_request("w", &one, &value, &value);
        if (rank.rank == 0) {
          request.operation = sends ? HVRUN_SEND : HVRUN_RECEIVE;
          request.root = 1;
        } else {
          ended.wait();
          request.name = "late";
        }
        const Status status = rank.run(request);
        if (rank.rank == 0) {
          CHECK(has_reported(rank.hub, "w", 1));
          ended.count_down();
        }
        const auto place = static_cast<std::size_t>(rank.rank);
        words[place] = stall_of(status);
        warnings[place] = rank.context.observation().counters.stalls.value();
      });
      const std::string what = sends ? "receive" : "send";
      CHECK(words[0].find("tensor 'w' has waited") == 0);
      CHECK(words[0].find(" for rank 1 to " + what + " it; ") != std::string::npos);
      CHECK(words[0] == words[1]);
      CHECK(log.text().find("tensor 'w' has waited") < log.text().find("That ends the job"));
      CHECK(warnings[0] > 0);
      CHECK(warnings[1] == 0);
    }
  }
}

// Its periodic words are what the late rank waits for.
TEST_CASE("the log and the counters say for whom the others wait, while they do") {
  for (const JobShape& shape : {JobShape{2}, JobShape{1, 1}}) {
    CAPTURE(name_of(shape));
    const LogCapture log;
    JobOptions options;
    options.shape = shape;
    options.environment.set("HVRUN_STRAGGLER_SECONDS", "0.2");
    run_job(options, [&](Rank& rank) {
      const std::int64_t one = 1;
      float value = 1;
      if (rank.rank == 1) await(rank, log, "for the last rank to have them: rank 1 0.");
      expect(rank.run(allreduce_request("w", &one, &value, &value)).ok(), "the tensor");
      const Counters& counters = rank.context.observation().counters;
      if (rank.rank == 0) expect(counters.worst_rank == 1, "rank 1 was late");
      if (rank.rank == 0) expect(counters.straggler_nanoseconds.value() > 0, "by some time");
    });
    CHECK(log.text().find("(not there yet)") != std::string::npos);
  }
}
