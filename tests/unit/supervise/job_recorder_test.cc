// Tests of launcher/supervise/report/job_recorder: job.json of a job over scripted agents, and of a
// job whose file system hangs. Each request for steps marks a renewal: no test waits for a time.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/report/job_recorder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <filesystem>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>

#include "launcher/supervise/report/exit_summary.h"

#include "tests/unit/supervise/supervised.h"
#include "tests/unit/temporary_folder.h"

using namespace hv::launcher;
namespace asio = boost::asio;
namespace wire = hv::wire;
using namespace std::chrono_literals;

namespace {

// Its ranks run until `is_enough` holds at a renewal, or for very many renewals.
struct SteppingAgent : FakeAgent {
  SteppingAgent() {
    on_steps_request = [this] {
      ++renewals;
      if (is_enough(*this) || renewals > kMostRenewals) return finish_all(0);
      // The first rank is the slow one: the other waits for it.
      const std::uint64_t steps = 100 * renewals;
      send(wire::StepsReply{{{0, {steps, steps * 50'000'000, 0, steps * 1'000'000, 0}},
                             {1, {steps, steps * 50'000'000, 0, steps * 40'000'000, 0}}}});
    };
  }
  void on_go() override {}

  static constexpr std::uint64_t kMostRenewals = 1000;
  std::function<bool(SteppingAgent&)> is_enough;
  std::uint64_t renewals = 0;
};

nlohmann::json json_at(const std::string& path) {
  return nlohmann::json::parse(hv::tests::file_content(path), nullptr, false);
}

JobSpec spec_with(const hv::tests::TemporaryFolder& folder) {
  JobSpec spec;
  spec.output.output_directory = folder.path();
  return spec;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

RecordingOptions renewed_often() { return {.interval = 20ms}; }

bool has_ranks(const std::string& text) { return contains(text, "\"rank\": 0"); }
bool is_running(const std::string& text) { return contains(text, "\"state\": \"running\""); }
bool is_restarted(const std::string& text) { return contains(text, "\"is_restarted\": true"); }

// A file system on which writes of a chosen text hang until release().
class HangingFiles {
 public:
  explicit HangingFiles(std::function<bool(const std::string& text)> hangs)
      : hangs_(std::move(hangs)) {}

  RecordingOptions options(hv::Duration limit = 1h, hv::Duration limit_at_once = 1ms) {
    RecordingOptions options = renewed_often();
    options.limit = limit;
    options.limit_at_once = limit_at_once;
    options.write = [this](const JobFile& file, const std::string& text) {
      begin(text);
      if (hangs_(text)) released_.wait();
      hv::Status result = file.write(text);
      ++written_;
      return result;
    };
    return options;
  }
  void release() { release_.set_value(); }
  std::size_t written() const { return written_; }
  std::vector<std::string> begun() const {
    const std::lock_guard lock(mutex_);
    return begun_;
  }

 private:
  void begin(const std::string& text) {
    const std::lock_guard lock(mutex_);
    begun_.push_back(text);
  }

  const std::function<bool(const std::string&)> hangs_;
  std::promise<void> release_;
  const std::shared_future<void> released_ = release_.get_future().share();
  std::atomic<std::size_t> written_{0};
  mutable std::mutex mutex_;
  std::vector<std::string> begun_;  // texts; guarded by mutex_
};

hv::Status no_room(const JobFile& file) {
  return hv::system_status("write " + file.path(), ENOSPC);
}

// A recorder without the rest of a supervisor.
struct Recording {
  explicit Recording(HangingFiles& its_files, hv::Duration limit = 1h,
                     hv::Duration limit_at_once = 1ms)
      : files(its_files),
        recorder(job, console, its_files.options(limit, limit_at_once), nullptr) {}

  OutputOptions output() const {
    OutputOptions options;
    options.stdout_fd = out.get();
    options.stderr_fd = err.get();
    return options;
  }
  JobRecord ended(const std::string& state, int code) const {
    JobEnd job_end;
    job_end.state = state;
    job_end.exit_code = code;
    return record_of(job, job_end);
  }
  // Returns once conduct and that many writes have ended.
  void run(asio::awaitable<void> conduct, std::size_t writes) {
    bool has_ended = false;
    asio::co_spawn(io, std::move(conduct), [&has_ended](std::exception_ptr) { has_ended = true; });
    const auto work = asio::make_work_guard(io);
    while (!has_ended || files.written() < writes) io.run_for(1ms);
  }
  std::string told() {
    room.flush();
    return content_of(err);
  }

  HangingFiles& files;
  hv::tests::TemporaryFolder folder;
  const std::string path = folder / "job.json";
  const hv::UniqueFd out = scratch_file(), err = scratch_file();
  asio::io_context io{1};
  Job job{io.get_executor(), spec_with(folder)};
  OutputRoom room{output(), [](std::uint32_t, std::size_t) {}, [](const std::string&, int, int) {}};
  Console console{room, false, hv::now()};
  const LastLines no_lines = [](int) { return std::vector<std::string>(); };
  JobRecorder recorder;
};

}  // namespace

TEST_CASE("job.json of a running job is renewed with steps, their rate and the slowest rank") {
  hv::tests::TemporaryFolder folder;
  nlohmann::json running;
  SteppingAgent agent;
  agent.is_enough = [&](SteppingAgent&) {
    running = json_at(folder / "job.json");
    return !running.is_discarded() && running["progress"].is_object() &&
           running["progress"]["steps_per_second"].is_number();
  };
  const Outcome outcome =
      supervise({{"a", &agent}}, "a:2", spec_with(folder), nullptr, renewed_often());
  CHECK(outcome.code == 0);
  CHECK(agent.renewals <= SteppingAgent::kMostRenewals);
  CHECK(running["state"] == "running");
  CHECK(!running.contains("exit_code"));
  CHECK(running["seconds"] > 0);
  CHECK(running["written_at"] > running["started_at"]);
  CHECK(running["progress"]["steps"] >= 100);
  CHECK(running["progress"]["slowest_rank"] == 0);
  const nlohmann::json ended = json_at(folder / "job.json");
  CHECK(ended["state"] == "ok");
  CHECK(ended["exit_code"] == 0);
  CHECK(!ended.contains("progress"));
  CHECK(!std::filesystem::exists(folder / "job.json.new"));
}

TEST_CASE("a renewal that fails is reported once, ends no job, and is tried again") {
  hv::tests::TemporaryFolder folder;
  const std::string path = folder / "job.json";
  std::atomic<int> failures{0};
  RecordingOptions options = renewed_often();
  options.write = [&failures](const JobFile& file, const std::string& text) {
    hv::Status result = file.write(text);
    if (!result.ok()) ++failures;
    return result;
  };
  const auto is_renewed = [&path] {
    const nlohmann::json json = json_at(path);
    return !json.is_discarded() && json["progress"].is_object();
  };
  enum { kWorks, kFails, kWorksAgain } stage = kWorks;
  SteppingAgent agent;
  agent.is_enough = [&](SteppingAgent&) {
    if (stage == kWorks && is_renewed()) {
      stage = kFails;
      std::error_code is_file;  // another renewal may come between
      do {
        std::filesystem::remove(path);
      } while (!std::filesystem::create_directory(path, is_file));
    } else if (stage == kFails && failures >= 2) {
      stage = kWorksAgain;
      std::filesystem::remove_all(path);
    }
    return stage == kWorksAgain && is_renewed();
  };
  const Outcome outcome = supervise({{"a", &agent}}, "a:2", spec_with(folder), nullptr, options);
  CHECK(stage == kWorksAgain);
  CHECK(agent.renewals <= SteppingAgent::kMostRenewals);
  CHECK(outcome.code == 0);
  CHECK(count_of(outcome.err, "hvrun: warning: write " + path +
                                  ": Is a directory; the job goes on, and hvrun tries again "
                                  "every 20 ms\n") == 1);
  CHECK(json_at(path)["state"] == "ok");
}

TEST_CASE("a write that hangs as the ranks start stops neither the job nor its end") {
  hv::tests::TemporaryFolder folder;
  HangingFiles files([](const std::string& text) { return is_running(text) && has_ranks(text); });
  struct Agent : SteppingAgent {
    void on_end() override {
      begun_before_end = files->begun();
      files->release();
      FakeAgent::on_end();
    }
    HangingFiles* files = nullptr;
    std::vector<std::string> begun_before_end;
  } agent;
  agent.files = &files;
  agent.is_enough = [](SteppingAgent& self) { return self.renewals == 6; };
  const Outcome outcome =
      supervise({{"a", &agent}}, "a:2", spec_with(folder), nullptr, files.options());
  CHECK(outcome.code == 0);
  CHECK(agent.renewals == 6);
  // Renewals are left out meanwhile.
  REQUIRE(!agent.begun_before_end.empty());
  CHECK(has_ranks(agent.begun_before_end.back()));
  CHECK(std::count_if(agent.begun_before_end.begin(), agent.begun_before_end.end(), has_ranks) ==
        1);
  CHECK(count_of(outcome.err, ": it takes longer than 20 ms; the job goes on") == 1);
  CHECK(contains(files.begun().back(), "\"state\": \"ok\""));
  CHECK(json_at(folder / "job.json")["state"] == "ok");
}

TEST_CASE("a failure to write job.json as the ranks start ends the job") {
  hv::tests::TemporaryFolder folder;
  struct Agent : FakeAgent {
    void on_go() override {}
  } agent;
  RecordingOptions options;
  options.write = [](const JobFile& file, const std::string& text) {
    return is_running(text) && has_ranks(text) ? no_room(file) : file.write(text);
  };
  const Outcome outcome = supervise({{"a", &agent}}, "a:2", spec_with(folder), nullptr, options);
  CHECK(outcome.code == 3);
  CHECK(agent.ended);
  CHECK(contains(outcome.err,
                 "hvrun: error: write " + folder / "job.json" + ": No space left on device; "));
  CHECK(json_at(folder / "job.json")["state"] == "output_failed");
}

TEST_CASE("a restart that cannot be recorded does not happen, and the reason is reported") {
  hv::tests::TemporaryFolder folder;
  struct Agent : FakeAgent {
    void on_go() override { finish_all(7); }
  } agent;
  JobSpec spec = spec_with(folder);
  spec.ending.restarts = 1;
  RecordingOptions options;
  options.write = [](const JobFile& file, const std::string& text) {
    return is_restarted(text) ? no_room(file) : file.write(text);
  };
  const Outcome outcome = supervise({{"a", &agent}}, "a:1", spec, nullptr, options);
  CHECK(outcome.code == 7);
  CHECK(contains(outcome.err, "hvrun: the job does not start again: write " + folder / "job.json" +
                                  ": No space left on device\n"));
  CHECK(!contains(outcome.err, "the job starts again"));
  const nlohmann::json ended = json_at(folder / "job.json");
  CHECK(ended["state"] == "rank_failed");
  CHECK(ended["is_restarted"] == false);
}

TEST_CASE("a first signal ends the wait for the first record, a second one that for the last") {
  HangingFiles files([](const std::string&) { return true; });
  Recording recording(files);
  hv::Status first;
  int code = 0;
  const auto conduct = [&]() -> asio::awaitable<void> {
    asio::post(recording.io, [&] {
      recording.job.request_stop({StopReason::Kind::kSignal, SIGTERM});
    });
    first = co_await recording.recorder.write_first();
    asio::post(recording.io, [&] { recording.job.request_stop_at_once(); });
    code = co_await recording.recorder.write_end(recording.ended("interrupted", 143),
                                                 recording.no_lines);
    files.release();
  };
  recording.run(conduct(), 2);
  CHECK(!first.ok());
  CHECK(code == 143);
  CHECK(contains(recording.told(), "hvrun: error: write " + recording.path +
                                       ": a signal ended the wait for it\n  try: "));
  CHECK(json_at(recording.path)["state"] == "interrupted");  // the writes went on, in order
}

TEST_CASE("a second signal leaves a record the time that a file system takes") {
  HangingFiles files([](const std::string&) { return false; });
  Recording recording(files, 1h, 1h);
  int code = 0;
  const auto conduct = [&]() -> asio::awaitable<void> {
    recording.job.request_stop({StopReason::Kind::kSignal, SIGINT});
    recording.job.request_stop_at_once();
    code = co_await recording.recorder.write_end(recording.ended("interrupted", 130),
                                                 recording.no_lines);
  };
  recording.run(conduct(), 1);
  CHECK(code == 130);
  CHECK(recording.told() == "");
  CHECK(json_at(recording.path)["state"] == "interrupted");
}

TEST_CASE("a record that takes too long is given up, and no later one overtakes it") {
  HangingFiles files(is_restarted);
  Recording recording(files, 1ms);
  hv::Status attempt;
  int code = 0;
  std::size_t begun = 0;
  const auto conduct = [&]() -> asio::awaitable<void> {
    JobRecord record = recording.ended("rank_failed", 7);
    record.attempt.is_restarted = true;
    attempt = co_await recording.recorder.write_attempt(record, recording.no_lines);
    record.attempt.is_restarted = false;
    code = co_await recording.recorder.write_end(record, recording.no_lines);
    begun = files.begun().size();
    files.release();
  };
  recording.run(conduct(), 2);
  CHECK(attempt.message == "write " + recording.path + ": it takes longer than 1 ms");
  CHECK(code == 7);
  CHECK(begun <= 1);
  REQUIRE(files.begun().size() == 2);
  CHECK(is_restarted(files.begun()[0]));
  CHECK(json_at(recording.path)["is_restarted"] == false);
}
