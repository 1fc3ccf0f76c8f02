// Tests of launcher/record/record_json: what is written is read back, and whatever else there is
// does no harm.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/record/record_json.h"

#include <doctest/doctest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "launcher/record/end_text.h"
#include "tests/unit/paths.h"
#include "tests/unit/temporary_folder.h"

using namespace hv::launcher;

namespace {

std::vector<std::string> lines_of(int rank) { return {"line of " + std::to_string(rank)}; }

JobRecord failed_job() {
  JobRecord record;
  record.state = "rank_failed";
  record.exit_code = 139;
  record.attempt.restarts = 2;
  record.attempt.is_restarted = true;
  record.times.seconds = 2.25;
  record.command = {"./train", "a b"};
  record.times.started_ns = 1'795'739'972'690'007'400;
  record.hvrun = {77, "login", "boot", "pid:[1]", 99};
  record.hosts = {{"a"}, {"b"}};
  for (int rank = 0; rank < 4; ++rank) {
    record.ranks.emplace_back().host = rank / 2;
    record.ranks.back().pid = static_cast<std::uint32_t>(100 + rank);
    record.ranks.back().step_times = {100, 5'000'000'000, 500'000'000, 1'500'000'000, 100};
  }
  record.ranks[1].end = hv::ExitStatus{true, SIGSEGV, true};
  record.ranks[1].found = {"its core file is /c", hv::wire::OutOfMemory::kBesideIt, "cgroup /x"};
  record.ranks[2].end = hv::ExitStatus{false, 0};
  record.ranks[2].ended_ns = 1'795'739'972'802'885'900;
  record.ranks[2].never_joined = true;
  record.ranks[3].end = hv::ExitStatus{false, 1};
  record.ranks[3].has_lost_a_peer = true;
  record.ranks[1].quiet_s = 12.5;
  record.ranks[2].has_input = true;
  record.ranks[3].on_sigterm = hv::wire::SigtermUse::kIgnored;
  record.ranks[3].grace_s = 3;
  record.ranks[3].is_grace_stated = true;
  record.ranks[1].on_sigterm = hv::wire::SigtermUse::kHandledByDescendant;
  record.ranks[1].grace_s = 2;
  FailureCause cause;
  cause.rank = 1;
  cause.left_before = 2;
  cause.consequences = {3};
  record.cause = cause;
  record.standings = {{"tensor 'w' has waited 61 s for rank 1; where they stand:",
                       {"rank 1 on host a stands in (Python, innermost last):\n"
                        "      a.py:1 in f\n      a.py:2 in g",
                        "rank 2 on host b: nothing is known of its stack"}},
                      {"where the ranks stand:", {}}};
  record.not_checked = {"gpus on b: the driver hangs"};
  return record;
}

JobRecord read_back(const JobRecord& record) {
  auto read = record_from_json(record_as_json(record, lines_of));
  REQUIRE(std::holds_alternative<JobRecord>(read));
  return std::get<JobRecord>(read);
}

std::string problem_of(const std::string& text) {
  const auto read = record_from_json(text);
  const auto* problem = std::get_if<RecordProblem>(&read);
  return problem ? problem->what : "";
}

}  // namespace

TEST_CASE("a record that is read back tells the same end, and is written the same") {
  std::vector<JobRecord> records(4, failed_job());
  records[1].cause = FailureCause{};
  records[1].cause->host = 1;
  records[1].cause->reason = "was silent";
  records[1].hosts[1] = {"b", true, "look there"};
  records[2].cause->reason = "gave no sign of life";
  records[2].cause->is_stopped = true;
  records[3].cause->rank = 2;
  records[3].cause->awaited_in_call = "MPI_Init";
  records[3].cause->left_before.reset();
  for (const JobRecord& record : records) {
    const JobRecord again = read_back(record);
    CHECK(end_text(record, lines_of) != "");
    CHECK(end_text(again, lines_of) == end_text(record, lines_of));
    CHECK(training_summary(again) == training_summary(record));
    CHECK(record_as_json(again, lines_of) == record_as_json(record, lines_of));
    REQUIRE(again.standings.size() == 2);
    CHECK(standing_text(again.standings[0]) == standing_text(record.standings[0]));
    CHECK(findings_text(again, "") == "hvrun: not looked at: gpus on b: the driver hangs\n");
  }
}

TEST_CASE("a job that runs is read back with its hosts, ranks and process") {
  JobRecord record;
  record.hosts = {{"a"}};
  record.ranks.emplace_back().pid = 5;
  record.hvrun = {77, "login", "boot", "pid:[1]", 99};
  record.times = {12.5, 1'795'739'972'000'000'000, 1'795'739'984'500'000'000};
  const nlohmann::json json = nlohmann::json::parse(record_as_json(record, lines_of));
  CHECK(!json.contains("exit_code"));
  CHECK(json["progress"].is_null());
  CHECK(json["seconds"] == 12.5);
  CHECK(json["written_at"] == 1795739984.5);
  const JobRecord again = read_back(record);
  CHECK(again.times.written_ns == record.times.written_ns);
  CHECK(again.state == kStateRunning);
  CHECK(again.hvrun.host == "login");
  CHECK(again.hvrun.start_ticks == 99);
  CHECK(again.ranks.at(0).pid == 5);
  CHECK(!again.cause);
}

TEST_CASE("a job that runs is written with its steps, their rate and the slowest rank") {
  JobRecord record = failed_job();
  record.state = kStateRunning;
  record.cause.reset();
  for (RecordedRank& rank : record.ranks) rank.end.reset();
  const auto progress = [&record] {
    return nlohmann::json::parse(record_as_json(record, lines_of))["progress"];
  };
  CHECK(progress()["slowest_rank"].is_null());  // all take as long
  CHECK(progress()["steps_per_second"].is_null());
  record.ranks[2].step_times = {98, 4'900'000'000, 500'000'000, 100'000'000, 98};
  record.times.steps_per_second = 7.5;
  CHECK(progress()["steps"] == 98);
  CHECK(progress()["steps_per_second"] == 7.5);
  CHECK(progress()["slowest_rank"] == 2);
  CHECK(progress()["others_wait_seconds"].get<double>() == doctest::Approx(0.014).epsilon(0.01));
  CHECK(record_as_json(read_back(record), lines_of) == record_as_json(record, lines_of));
}

TEST_CASE("a record of version 1 tells the same end as the same record of version 2") {
  const auto read = record_from_json(
      hv::tests::file_content(hv::tests::source_file("tests/unit/record/job_version_1.json")));
  REQUIRE(std::holds_alternative<JobRecord>(read));
  const JobRecord& record = std::get<JobRecord>(read);
  CHECK(record.times.started_ns == 1'795'739'972'690'000'000);
  CHECK(record.times.written_ns == 0);
  CHECK(record.ranks.at(0).step_times.steps == 100);
  CHECK(record.ranks.at(0).found.out_of_memory == hv::wire::OutOfMemory::kNotAsked);
  CHECK(record.ranks.at(1).found.out_of_memory == hv::wire::OutOfMemory::kBesideIt);
  CHECK(record.ranks.at(1).found.memory == "by memory.events of /job");
  CHECK(record.ranks.at(2).ended_ns == 1'795'739'982'500'000'000);
  REQUIRE(record.cause);
  CHECK(record.cause->left_before == 0);
  REQUIRE(record.findings.size() == 1);
  CHECK(record.findings[0].id == "memory-short");
  CHECK(record.findings[0].condition == "less than 2 GiB is free");
  CHECK(record.findings[0].fix == "start fewer ranks there");
  CHECK(record.not_checked == std::vector<std::string>{"gpus on b: the driver hangs"});
  REQUIRE(record.standings.size() == 1);
  CHECK(record.standings[0].heading == "where the ranks stand:");
  CHECK(end_text(read_back(record), lines_of) == end_text(record, lines_of));
  const auto lost = [](const char* cause) {
    const auto host = record_from_json(
        std::string("{\"version\":1,\"state\":\"host_lost\",\"hosts\":[\"a\"],\"advice\":\"top\","
                    "\"ranks\":[{\"rank\":0,\"host_index\":0}],\"cause\":{") +
        cause + "}}");
    return std::get<JobRecord>(host);
  };
  const JobRecord host =
      lost("\"host_index\":0,\"reason\":\"r\",\"agent_gave_up\":true,\"advice\":\"look\"");
  CHECK(host.advice == "top");
  CHECK(host.hosts.at(0).gave_up);
  CHECK(host.hosts.at(0).advice == "look");
  const JobRecord rank = lost("\"rank\":0,\"lost_as\":\"silent\",\"missed_at\":\"MPI_Init\"");
  CHECK(rank.cause->reason == "silent");
  CHECK(rank.cause->awaited_in_call == "MPI_Init");
}

TEST_CASE("what is no record is refused with what is wrong with it") {
  CHECK(problem_of("") == "it is no JSON, or was cut off");
  CHECK(problem_of("{\"version\": 1") == "it is no JSON, or was cut off");
  CHECK(problem_of("[]") == "it is no JSON object");
  CHECK(problem_of("{}").find("its version is neither 1 nor 2: another hvrun wrote it") == 0);
  CHECK(problem_of("{\"version\":3,\"state\":\"ok\"}").find("its version is neither 1 nor 2") == 0);
  CHECK(problem_of("{\"version\":2}") == "/state: not there");
  const auto job = [](const char* more) {
    return std::string("{\"version\":2,\"state\":\"x\",\"hosts\":[\"a\"],") + more + "}";
  };
  CHECK(problem_of(job("\"ranks\":[{\"rank\":1,\"host_index\":0}]")) ==
        "/ranks/0: its rank is not 0");
  CHECK(problem_of(job("\"ranks\":[{\"rank\":0,\"host_index\":1}]")) ==
        "/ranks/0: no host_index that stands in /hosts");
  CHECK(problem_of(job("\"cause\":{\"rank\":0}")) == "/cause/rank: no rank that stands in /ranks");
  CHECK(problem_of(job("\"cause\":{\"host_index\":-1}"))
            .find("/cause: neither a rank nor a host_index") == 0);
  CHECK(problem_of(std::string(60 << 20, '[')) == "it is nested deeper than 16 levels");
  CHECK(problem_of(std::string(257 << 20, ' ')) == "it is larger than 256 MiB");
  std::string members = "{";
  for (int i = 0; i < 1000; ++i) members += "\"" + std::to_string(i) + "\": 0,";
  CHECK(problem_of(members) == "it has an object of more than 64 members");
}

TEST_CASE("texts of a record are printable, whatever stands in them") {
  const auto read = record_from_json(
      "{\"version\":2,\"state\":\"x\\u001b[2J\",\"hosts\":[\"a\\n\"],\"error\":\"\\u0007\","
      "\"command\":[\"\\u0000\",3]}");
  const auto& record = std::get<JobRecord>(read);
  CHECK(record.state == "x\\x1b[2J");
  CHECK(record.hosts[0].name == "a\\x0a");
  CHECK(record.error == "\\x07");
  CHECK(record.command == std::vector<std::string>{"\\x00"});
}
