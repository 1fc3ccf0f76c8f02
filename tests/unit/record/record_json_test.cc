// Tests of launcher/record/record_json: what is written is read back, and whatever else there is
// does no harm.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/record/record_json.h"

#include <doctest/doctest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "launcher/record/end_words.h"

using namespace hv::launcher;

namespace {

std::vector<std::string> lines_of(int rank) { return {"line of " + std::to_string(rank)}; }

JobRecord failed_job() {
  JobRecord record;
  record.state = "rank_failed";
  record.exit_code = 139;
  record.seconds = 2.25;
  record.command = {"./train", "a b"};
  record.begun_ns = 1'795'739'972'690'007'400;
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
  record.not_probed = {"gpus on b: the driver hangs"};
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
  records[3].cause->missed_at = "MPI_Init";
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
  const JobRecord again = read_back(record);
  CHECK(again.state == kStateRunning);
  CHECK(again.hvrun.host == "login");
  CHECK(again.hvrun.start_ticks == 99);
  CHECK(again.ranks.at(0).pid == 5);
  CHECK(!again.cause);
}

TEST_CASE("what is no record is refused with what is wrong with it") {
  CHECK(problem_of("") == "it is no JSON, or was cut off");
  CHECK(problem_of("{\"version\": 1") == "it is no JSON, or was cut off");
  CHECK(problem_of("[]") == "it is no JSON object");
  CHECK(problem_of("{}") == "its version is not 1: it is another hvrun's, or no job's");
  CHECK(problem_of("{\"version\":2,\"state\":\"ok\"}").find("its version is not 1") == 0);
  CHECK(problem_of("{\"version\":1}") == "/state: not there");
  const auto job = [](const char* more) {
    return std::string("{\"version\":1,\"state\":\"x\",\"hosts\":[\"a\"],") + more + "}";
  };
  CHECK(problem_of(job("\"ranks\":[{\"rank\":1,\"host_index\":0}]")) ==
        "/ranks/0: its rank is not 0");
  CHECK(problem_of(job("\"ranks\":[{\"rank\":0,\"host_index\":1}]")) ==
        "/ranks/0: no host_index that stands in /hosts");
  CHECK(problem_of(job("\"cause\":{\"rank\":0}")) == "/cause/rank: no rank that stands in /ranks");
  CHECK(problem_of(job("\"cause\":{\"host_index\":-1}"))
            .find("/cause: neither a rank nor a host_index") == 0);
  CHECK(problem_of(std::string(1 << 20, '[')) == "it is no JSON, or was cut off");
}

TEST_CASE("texts of a record are printable, whatever stands in them") {
  const auto read = record_from_json(
      "{\"version\":1,\"state\":\"x\\u001b[2J\",\"hosts\":[\"a\\n\"],\"error\":\"\\u0007\","
      "\"command\":[\"\\u0000\",3]}");
  const auto& record = std::get<JobRecord>(read);
  CHECK(record.state == "x\\x1b[2J");
  CHECK(record.hosts[0].name == "a\\x0a");
  CHECK(record.error == "\\x07");
  CHECK(record.command == std::vector<std::string>{"\\x00"});
}
