// Tests of launcher/record/explain and job_folder: the end of a job from its folder.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/record/explain.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "launcher/output/recent_lines.h"
#include "launcher/record/end_text.h"
#include "launcher/record/record_json.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "tests/unit/temporary_folder.h"

using namespace hv::launcher;

namespace {

const std::string kTrace = "Traceback (most recent call last):\n  File \"t.py\"\nValueError: no\n";

struct Folder {
  hv::tests::TemporaryFolder folder;
  std::string path = folder.path();

  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = path + "/" + name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }
  std::string text() const { return explanation_as_text(read_job_folder(path)); }
  nlohmann::json json() const {
    return nlohmann::json::parse(explanation_as_json(read_job_folder(path)));
  }
  bool says(const std::string& words) const { return text().find(words) != std::string::npos; }
};

JobRecord job_of(int ranks) {
  JobRecord record;
  record.hosts = {{"a"}};
  record.ranks.resize(static_cast<std::size_t>(ranks));
  record.hvrun = this_process();
  return record;
}

std::string as_json(const JobRecord& record) {
  return record_as_json(record, [](int) { return std::vector<std::string>(); });
}

}  // namespace

TEST_CASE("an ended job is told in the words in which it ended, with its last lines") {
  Folder folder;
  JobRecord record = job_of(2);
  record.state = "rank_failed";
  record.ranks[1].end = hv::ExitStatus{false, 1};
  record.cause.emplace().rank = 1;
  folder.write("job.json", as_json(record));
  folder.write("rank.1/stderr", kTrace);
  CHECK(folder.text() == end_text(record, [](int) {
          return std::vector<std::string>{"Traceback (most recent call last):", "  File \"t.py\"",
                                          "ValueError: no"};
        }));
  CHECK(folder.json()["cause"]["last_lines"].size() == 3);
}

TEST_CASE(
    "of a job that was started again the last attempt is explained, and the others are named") {
  Folder folder;
  JobRecord record = job_of(1);
  record.state = "rank_failed";
  record.ranks[0].end = hv::ExitStatus{false, 7};
  record.cause.emplace().rank = 0;
  record.attempt.is_restarted = true;
  folder.write("job.json", as_json(record));
  folder.write("rank.0/stderr", "of the first\n");
  CHECK(folder.says("hvrun: after that the job was to start again (--restarts)\n"));
  record.attempt.restarts = 1;
  record.attempt.is_restarted = false;
  record.ranks[0].end = hv::ExitStatus{false, 9};
  folder.write("restart.1/job.json", as_json(record));
  folder.write("restart.1/rank.0/stderr", "of the second\n");
  const std::string expected =
      "hvrun: the job was started 2 times; the last attempt, which follows, is in " + folder.path +
      "/restart.1\n"
      "  attempt 1: rank 0 on host a ended with exit code 7 after 0 s\n"
      "hvrun: error: rank 0 on host a ended with exit code 9 after 0 s\n"
      "hvrun: its last lines:\n    of the second\n";
  CHECK(folder.text() == expected);
  CHECK(folder.json()["restarts"] == 1);
  ++record.hvrun.start_ticks;  // left by an earlier job
  folder.write("restart.1/job.json", as_json(record));
  CHECK(folder.says("of the first"));
  CHECK(!folder.says("of the second"));
}

TEST_CASE("where ranks stood comes before the end") {
  Folder folder;
  JobRecord record = job_of(1);
  record.state = "timed_out";
  record.error = "the job took longer than --timeout 1";
  record.standings = {{"where the ranks stand:", {"rank 0 on host a stands in:\n      f"}}};
  folder.write("job.json", as_json(record));
  CHECK(folder.text() ==
        "hvrun: where the ranks stand:\n  rank 0 on host a stands in:\n      f\n"
        "hvrun: error: the job took longer than --timeout 1\n");
}

TEST_CASE("of large files the same lines are read that the job had kept") {
  Folder folder;
  std::string written;
  for (int i = 0; i < 30000; ++i)
    written += std::string(static_cast<std::size_t>(i % 800), 'x') + "\n";
  for (const std::size_t size :
       {kRecentBytes - 1, kRecentBytes, kRecentBytes + 1, written.size()}) {
    folder.write("rank.0/stderr", written.substr(written.size() - size));
    RecentLines recent;
    recent.add(2, written.substr(written.size() - size));
    CHECK(read_job_folder(folder.path).last_lines(0) == recent.lines());
  }
}

TEST_CASE("a job that ended well, or by no rank's fault, is told as that") {
  Folder folder;
  JobRecord record = job_of(1);
  record.state = "ok";
  record.times.seconds = 1.5;
  folder.write("job.json", as_json(record));
  CHECK(folder.text() == "hvrun: the job ended well after 1.5 s: there is nothing to explain\n");
  record.state = "timeout";
  record.error = "the job ran longer than --timeout 3 s";
  record.advice = "a longer --timeout";
  folder.write("job.json", as_json(record));
  CHECK(folder.text() ==
        "hvrun: error: the job ran longer than --timeout 3 s\n  try: a longer --timeout\n");
  record = job_of(1);
  record.state = "interrupted";
  record.exit_code = 143;
  folder.write("job.json", as_json(record));
  CHECK(folder.says("hvrun: ended by SIGTERM"));
}

TEST_CASE("a job whose hvrun still runs is told as that, one whose hvrun is gone too") {
  Folder folder;
  JobRecord record = job_of(1);
  const auto written = [&](double seconds_ago) -> Folder& {
    record.times.written_ns = hv::wall_clock_ns() - static_cast<std::int64_t>(seconds_ago * 1e9);
    folder.write("job.json", as_json(record));
    return folder;
  };
  const std::string runs = "hvrun: the job still runs: hvrun is process ";
  CHECK(written(4).says(runs + std::to_string(::getpid()) + " on host "));
  CHECK(folder.json()["state"] == "running");
  CHECK(folder.json()["still_runs"] == true);
  // Stopped, or without a disk to write to.
  CHECK(written(3600).says(" is this job's hvrun, and has not renewed job.json: "));
  CHECK(folder.says("\nhvrun: its last sign was 60 min ago, 0 s after its start\n"));
  CHECK(folder.json()["state"] == "unknown");
  CHECK(folder.json()["still_runs"] == true);
  ++record.hvrun.start_ticks;
  CHECK(written(4).says("hvrun: error: hvrun did not see the end of this job: process "));
  CHECK(folder.json()["state"] == "unknown");
  record.hvrun.boot_id = "another";
  CHECK(written(4).says(runs));
  CHECK(folder.json()["state"] == "running");
  CHECK(folder.json()["still_runs"].is_null());
  for (const double seconds_ago : {3600., -3600.}) {
    CHECK(written(seconds_ago).says("' there tells whether it still runs; "));
    CHECK(folder.json()["state"] == "unknown");
  }
}

TEST_CASE("of a job that runs it is told how far it has come, and how old that is") {
  Folder folder;
  JobRecord record = job_of(2);
  record.ranks[0].step_times = {120, 6'000'000'000, 0, 3'000'000'000, 0};
  record.ranks[1].step_times = {118, 5'900'000'000, 0, 118'000'000, 0};
  record.times = {61.25, 0, hv::wall_clock_ns() - 4'000'000'000};
  record.times.steps_per_second = 19.5;
  folder.write("job.json", as_json(record));
  CHECK(
      folder.says(" s ago, 61.2 s after its start: 118 steps, 19.5 a second; rank 1 on host a is "
                  "the slowest: the others wait 24 ms a step for it\n"));
  const nlohmann::json json = folder.json();
  CHECK(json["age_seconds"].get<double>() >= 4);
  CHECK(json["seconds"] == 61.25);
  CHECK(json["progress"]["steps"] == 118);
  const nlohmann::json recorded = nlohmann::json::parse(as_json(record));
  for (const char* const name : {"state", "hvrun", "seconds", "progress"})
    CHECK_MESSAGE(json[name] == recorded[name], name);
}

TEST_CASE("a running job's record of version 1 has no age: its process decides") {
  Folder folder;
  nlohmann::json json = nlohmann::json::parse(as_json(job_of(1)));
  json["version"] = 1;
  json.erase("written_at");
  json["exit_code"] = 0;
  folder.write("job.json", json.dump());
  CHECK(folder.says("hvrun: the job still runs: "));
  CHECK(!folder.says("last sign"));
  json["hvrun"]["boot_id"] = "another";
  folder.write("job.json", json.dump());
  CHECK(folder.json()["state"] == "unknown");
}

TEST_CASE("without a record the ranks' last words are told once, with who ended in an error") {
  Folder folder;
  for (const int rank : {0, 2, 3}) {
    const std::string number = std::to_string(rank);
    folder.write("rank." + number + "/stderr", "[rank" + number + "]: " + kTrace);
  }
  folder.write("rank.1/stderr", "Connection reset by peer\nRuntimeError: lost\n");
  folder.write("rank.4/stdout", "epoch 3 done\n");
  const std::string text = folder.text();
  CHECK(text == "hvrun: no job.json is in " + folder.path +
                    ", so what follows is by what its ranks wrote last\n"
                    "hvrun: what ranks 0-3 wrote ends in an error\n"
                    "hvrun: ranks 0,2-3 said, here as rank 0:\n"
                    "    [rank0]: Traceback (most recent call last):\n      File \"t.py\"\n"
                    "    ValueError: no\n"
                    "hvrun: rank 1 said:\n    Connection reset by peer\n    RuntimeError: lost\n"
                    "hvrun: what rank 4 wrote ends in no error\n");
  CHECK(folder.json()["texts"].size() == 3);
  CHECK(folder.json()["state"] == "unknown");
}

TEST_CASE("who lost a peer is told after who ended by itself") {
  Folder folder;
  folder.write("rank.0/stderr", "hvrun.exceptions.PeerLostError: rank 1\n");
  folder.write("rank.1/stderr", kTrace);
  const std::string text = folder.text();
  CHECK(text.find("rank 1 said") < text.find("rank 0 said"));
}

TEST_CASE("folders of other launchers are read, of several attempts the last") {
  for (const char* layout : {"0/stderr", "1/rank.0/stderr", "id/attempt_10/0/stderr.log"}) {
    Folder folder;
    folder.write(layout, kTrace);
    if (layout[0] == 'i') folder.write("id/attempt_9/0/stderr.log", "older\n");
    CHECK(folder.says("    ValueError: no\n"));
  }
}

TEST_CASE("ranks of an earlier job in the same folder are not told of") {
  Folder folder;
  folder.write("rank.7/stderr", kTrace);
  folder.write("rank.0/stderr", "fine\n");
  folder.write("job.json", as_json(job_of(1)));
  CHECK(!folder.says("rank 7"));
}

TEST_CASE("a folder of jobs' folders is that of the only job, or names them") {
  Folder folder;
  JobRecord record = job_of(1);
  record.state = "ok";
  folder.write("runs/one/job.json", as_json(record));
  folder.write("runs/one/rank.0/stderr", kTrace);
  CHECK(folder.says("the job ended well"));
  folder.write("runs/two/job.json", as_json(record));
  CHECK_THROWS_AS(folder.text(), hv::Error);
  try {
    folder.text();
  } catch (const hv::Error& error) {
    const std::string words = error.what();
    CHECK(words.find("several jobs: ") != std::string::npos);
    CHECK((words.find("runs/one") < words.find("runs/two")));
  }
  folder.write("rank.0/stderr", kTrace);  // its own
  CHECK(folder.says("what rank 0 wrote ends in an error"));
  CHECK(folder.says("wrote last\n"));
  Folder torchrun;
  torchrun.write("id/attempt_0/0/stderr.log", kTrace);
  CHECK(torchrun.says("wrote last, in " + torchrun.path + "/id/attempt_0\n"));
}

TEST_CASE("what cannot be read is told, and not how it ends") {
  Folder folder;
  folder.write("rank.0/stdout", "well\n");
  std::filesystem::create_directories(folder.path + "/rank.1");
  REQUIRE(::mkfifo((folder.path + "/rank.1/stderr").c_str(), 0600) == 0);
  const std::string words = "read " + folder.path + "/rank.1/stderr: it is no regular file";
  CHECK(folder.says("hvrun: warning: rank 1: " + words));
  CHECK(folder.says("what rank 0 wrote ends in no error"));
  CHECK(folder.json()["unreadable"]["1"] == words);
  if (::geteuid() == 0) return;  // whom no mode keeps out
  std::filesystem::permissions(folder.path + "/rank.0", std::filesystem::perms::none);
  CHECK(folder.says("rank.0: Permission denied"));
  CHECK_FALSE(folder.says("no error"));
  std::filesystem::permissions(folder.path + "/rank.0", std::filesystem::perms::owner_all);
}

TEST_CASE("what is no job's folder is an error, and files that are none do no harm") {
  CHECK_THROWS_AS(read_job_folder("/no/such"), hv::Error);
  Folder folder;
  CHECK_THROWS_AS(read_job_folder(folder.path), hv::Error);
  folder.write("rank.0/stdout", "x\n");
  folder.write("rank.99999999999/stdout", "x\n");
  folder.write("rank.-1/stdout", "x\n");
  REQUIRE(::mkfifo((folder.path + "/rank.0/stderr").c_str(), 0600) == 0);
  REQUIRE(::mkfifo((folder.path + "/job.json").c_str(), 0600) == 0);
  CHECK(folder.says("it cannot be read, or is no regular file"));
  std::filesystem::remove(folder.path + "/job.json");
  folder.write("job.json", "{\"version\": 1, \"st");
  CHECK(folder.says("/job.json: it is no JSON, or was cut off; what follows"));
}

TEST_CASE("words of ranks are printable, whatever bytes they wrote") {
  Folder folder;
  folder.write("rank.0/stderr", kTrace + "\x1b[2J\xff");
  CHECK(folder.says("    \\x1b[2J\\xff\n"));
  CHECK(folder.json()["texts"][0]["lines"][3] == "\\x1b[2J\\xff");
}
