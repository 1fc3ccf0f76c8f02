// Tests of the timeline: its file, what it holds, and what happens when that cannot be written.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/timeline.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <stdexcept>
#include <thread>

#include "tests/trace_file.h"
#include "tests/unit/engine/tensor.h"
#include "tests/unit/temporary_folder.h"

using namespace hv;
using namespace hv::runtime;
using hv::tests::TraceFile;
using Words = std::vector<std::string>;

namespace {

void run_whole(Timeline& timeline, Operation& operation) {
  timeline.taken(operation);
  timeline.heard_of(operation.set, operation.name, "rank 3");
  timeline.decided(operation, 1);
  timeline.begun(operation);
  timeline.completed(operation);
}

}  // namespace

TEST_CASE("rank 0 writes alone, or each rank a file of its own") {
  CHECK_FALSE(timeline_path("", 0));
  CHECK(timeline_path("/tmp/t.json", 0) == "/tmp/t.json");
  CHECK_FALSE(timeline_path("/tmp/t.json", 1));
  CHECK(timeline_path("/tmp/%r/t-%r.json", 12) == "/tmp/12/t-12.json");
}

TEST_CASE("an operation's stages are bars within bars, in its row") {
  const hv::tests::TemporaryFolder folder;
  Timeline timeline;
  REQUIRE(timeline.start(folder / "t.json", 5).ok());
  CHECK(timeline.is_on());
  const OperationPtr operation = named_operation("layer \"1\"\\\n\xff/weight");
  run_whole(timeline, *operation);
  operation->set = 7;
  operation->bucket = 9;
  timeline.taken(*operation);
  timeline.decided(*operation, 3);
  timeline.bucket_begun(*operation, 3, 48);
  timeline.bucket_ended(*operation);
  CHECK(timeline.stop().ok());
  CHECK_FALSE(timeline.is_on());
  const TraceFile trace(folder / "t.json");
  CHECK(trace.bars.at("layer \"1\"\\\\x0a\\xff/weight") ==
        Words{"NEGOTIATE_ALLREDUCE", "ALLREDUCE", "QUEUE", "REDUCE"});
  CHECK(trace.marks.begin()->second == std::set<std::string>{"ready: rank 3"});
  CHECK(trace.bars.size() == 2);
  CHECK(trace.open_bars == 2);  // of the second, which never ended
  REQUIRE(trace.buckets.size() == 1);
  CHECK(trace.buckets[0].at("id") == "7.9");
  CHECK(trace.buckets[0].at("args").at("tensors") == 3);
  for (const auto& event : trace.events) CHECK(event.at("pid") == 5);
  CHECK(trace.events.back().at("args").at("dropped") == 0);
}

TEST_CASE("what began before the timeline has no ends in it") {
  const hv::tests::TemporaryFolder folder;
  Timeline timeline;
  const OperationPtr early = named_operation("early"), decided = named_operation("decided");
  timeline.taken(*early);  // off: nothing
  REQUIRE(timeline.start(folder / "a.json", 0).ok());
  timeline.begun(*decided);
  timeline.completed(*decided);
  timeline.completed(*early);
  run_whole(timeline, *early);
  CHECK(timeline.stop().ok());
  const TraceFile trace(folder / "a.json");
  CHECK(trace.bars.size() == 1);
  CHECK(trace.bars.at("early").size() == 4);
  CHECK(trace.open_bars == 0);
}

TEST_CASE("it can be stopped and started again, twice at once is an error") {
  const hv::tests::TemporaryFolder folder;
  Timeline timeline;
  CHECK(timeline.stop().ok());  // none is being written
  for (const char* name : {"a.json", "b.json"}) {
    REQUIRE(timeline.start(folder / name, 0).ok());
    CHECK(timeline.start(folder / "other.json", 0).code == StatusCode::kArgument);
    run_whole(timeline, *named_operation("w"));
    CHECK(timeline.stop().ok());
    CHECK(TraceFile(folder / name).bars.at("w").size() == 4);
  }
}

TEST_CASE("a file that cannot be made is an error in words") {
  Timeline timeline;
  const Status status = timeline.start("/no/such/folder/t.json", 0);
  CHECK(status.code == StatusCode::kSystem);
  CHECK(status.message.find("/no/such/folder/t.json': No such file") != std::string::npos);
  CHECK_FALSE(timeline.is_on());
}

TEST_CASE("a full disk ends the timeline, and whoever stops it is told") {
  Timeline timeline;
  REQUIRE(timeline.start("/dev/full", 0).ok());
  run_whole(timeline, *named_operation("w"));
  const Status status = timeline.stop();
  CHECK(status.code == StatusCode::kSystem);
  CHECK(status.message.find("No space left") != std::string::npos);
}

TEST_CASE("what the disk is too slow for is dropped whole and counted, and nobody waits for it") {
  const hv::tests::TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const UniqueFd reader(::open(pipe.c_str(), O_RDWR | O_CLOEXEC));  // lets the writer open, too
  Timeline timeline;
  REQUIRE(timeline.start(pipe, 0).ok());
  const OperationPtr operation = named_operation("w");
  std::uint64_t rounds = 0;
  while (timeline.dropped() == 0 && ++rounds < 1'000'000) run_whole(timeline, *operation);
  CHECK(timeline.dropped() > 0);
  // Now the disk is fast again.
  std::string text;
  std::thread drain([&] {
    char bytes[65536];
    while (text.size() < 3 || text.compare(text.size() - 3, 3, "\n]\n") != 0) {
      const ssize_t got = ::read(reader.get(), bytes, sizeof bytes);
      if (got <= 0) return;
      text.append(bytes, static_cast<std::size_t>(got));
    }
  });
  CHECK(timeline.stop().ok());
  drain.join();
  std::ofstream(folder / "t.json") << text;
  const TraceFile trace(folder / "t.json");
  CHECK(trace.open_bars == 0);
  CHECK(trace.events.back().at("args").at("dropped").get<std::uint64_t>() == timeline.dropped());
}

TEST_CASE("names that never end need no endless memory: those beyond the last row have none") {
  Timeline timeline;
  REQUIRE(timeline.start("/dev/null", 0).ok());
  // Whether it was recorded. While the file's thread is behind, it is not.
  const auto is_recorded = [&](const std::string& name) {
    const std::uint64_t before = timeline.dropped();
    timeline.heard_of(0, name, "rank 1");
    return timeline.dropped() == before;
  };
  const auto wait_for_row = [&](const std::string& name) {
    while (!is_recorded(name)) std::this_thread::yield();
  };
  for (std::size_t row = 0; row < Timeline::kMostTracks; ++row) wait_for_row(std::to_string(row));
  for (int again = 0; again < 1000; ++again) CHECK_FALSE(is_recorded("one more"));
  wait_for_row("0");
  CHECK(timeline.stop().ok());
}

TEST_CASE("whatever goes wrong in its thread ends the timeline, in words, and nothing else") {
  const hv::tests::TemporaryFolder folder;
  std::unique_ptr<TimelineFile> file;
  const WriteFunction fails_to_think = [](int, const void*, std::size_t) -> ssize_t {
    throw std::length_error("too long to write");
  };
  REQUIRE(TimelineFile::open(folder / "t.json", 0, &file, fails_to_think).ok());
  const Status status = file->close();
  CHECK(status.code == StatusCode::kSystem);
  CHECK(status.message.find("t.json': too long to write") != std::string::npos);
  CHECK_FALSE(file->push({now(), 1, 'i', "late"}, false));
}

TEST_CASE("a disk that becomes full in the middle takes no more events") {
  const hv::tests::TemporaryFolder folder;
  std::unique_ptr<TimelineFile> file;
  std::atomic<int> writes{0};
  const WriteFunction fills = [&](int, const void*, std::size_t size) -> ssize_t {
    if (++writes <= 2) return static_cast<ssize_t>(size == 1 ? 1 : size / 2);
    errno = ENOSPC;
    return -1;
  };
  REQUIRE(TimelineFile::open(folder / "t.json", 0, &file, fills).ok());
  std::uint64_t events = 1;  // the last one is refused
  for (; file->push({now(), 1, 'i', "mark"}, false); ++events) std::this_thread::yield();
  const Status status = file->close();
  CHECK(file->dropped() == events);
  CHECK(status.code == StatusCode::kSystem);
  CHECK(status.message.find("No space left") != std::string::npos);
  CHECK(writes == 3);
}

TEST_CASE("while one thread waits for the file to open, nobody waits for that thread") {
  const hv::tests::TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  Timeline timeline;
  std::thread opens([&] {  // until somebody reads
    while (timeline.start(pipe, 0).code == StatusCode::kArgument) std::this_thread::yield();
  });
  while (timeline.start(folder / "t.json", 0).ok()) CHECK(timeline.stop().ok());
  CHECK(timeline.dropped() == 0);  // as the counters ask
  run_whole(timeline, *named_operation("w"));
  CHECK_FALSE(timeline.is_on());
  const UniqueFd reader(::open(pipe.c_str(), O_RDONLY | O_CLOEXEC));
  opens.join();
  CHECK(timeline.is_on());
  CHECK(timeline.stop().ok());
}
