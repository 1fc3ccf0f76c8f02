// SPDX-License-Identifier: Apache-2.0
#include "launcher/record/record_json.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "launcher/record/end_words.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostText = 10000;
constexpr std::size_t kMostRecordedRanks = 1 << 20;

Json training_json(const std::optional<TrainingSplit>& split) {
  if (!split) return nullptr;
  const double whole = split->step.total_s();
  const auto share = [whole](double part_s) { return whole > 0 ? part_s / whole : 0; };
  Json json{{"bound", bound_name(split->bound)},
            {"is_long", split->is_long},
            {"slowest_rank", split->slowest},
            {"step_seconds", whole},
            {"data_share", share(split->step.data_s)},
            {"compute_share", share(split->step.compute_s)},
            {"exchange_share", share(split->step.exchange_s)},
            {"step_seconds_without_bound", split->without_bound_s},
            {"others_wait_seconds", split->others_wait_s},
            {"slowest_by", nullptr},
            {"has_seen_data", split->has_seen_data}};
  if (const Cause cause = split->late_by(); cause != Cause::kNone)
    json["slowest_by"] = cause == Cause::kData ? "data" : "compute";
  return json;
}

Json step_times_json(const wire::StepTimes& times) {
  if (times.steps == 0) return nullptr;
  const auto seconds = [](std::uint64_t nanoseconds) {
    return 1e-9 * static_cast<double>(nanoseconds);
  };
  return {{"steps", times.steps},
          {"seconds", seconds(times.nanoseconds)},
          {"data_seconds", seconds(times.data_nanoseconds)},
          {"compute_seconds", seconds(times.compute_nanoseconds())},
          {"exchange_seconds", seconds(times.exchange_nanoseconds)},
          {"data_waits", times.data_waits}};
}

// Of the wall clock, in microseconds: more a double does not hold, and what is read would differ
// from what was written.
double wall_seconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds / 1000) / 1e6;
}

std::int64_t wall_nanoseconds(double seconds) { return std::llround(seconds * 1e6) * 1000; }

constexpr const char* kMemoryNames[] = {"not_asked", "unknown", "no", "this_rank", "beside_it"};

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(printable(text, kMostText));
}

Json number_or_null(const std::optional<int>& number) {
  return number ? Json(*number) : Json(nullptr);
}

Json cause_json(const JobRecord& record, const LastLines& last_lines) {
  if (!record.cause) return nullptr;
  const FailureCause& cause = *record.cause;
  Json json = Json::object();
  if (cause.host) {
    const RecordedHost& host = record.hosts[static_cast<std::size_t>(*cause.host)];
    json = {{"host", host.name},
            {"host_index", *cause.host},
            {"reason", printable(cause.reason, kMostText)},
            {"agent_gave_up", host.gave_up},
            {"advice", text_or_null(host.advice)}};
  } else if (cause.rank) {
    Json lines = Json::array();
    for (const std::string& line : last_lines(*cause.rank))
      lines.push_back(printable(line, kMostOfLine));
    json = {{"rank", *cause.rank},
            {"host", record.host_of(*cause.rank)},
            {"reason", cause_text(record, cause)},
            {"last_lines", lines},
            {"lost_as", text_or_null(cause.reason)},
            {"is_stopped", cause.is_stopped},
            {"missed_at", text_or_null(cause.missed_at)},
            {"left_before", number_or_null(cause.left_before)}};
  }
  json["consequences"] = cause.consequences;
  return json;
}

Json rank_json(const JobRecord& record, int number) {
  const RecordedRank& rank = record.ranks[static_cast<std::size_t>(number)];
  Json entry{{"rank", number},          {"host", record.host_of(number)},
             {"host_index", rank.host}, {"exit_code", nullptr},
             {"signal", nullptr},       {"steps", nullptr}};
  entry["steps"] = step_times_json(rank.step_times);
  entry["pid"] = rank.pid;
  if (!rank.end) return entry;
  entry[rank.end->by_signal ? "signal" : "exit_code"] = rank.end->code;
  entry["ended"] = wall_seconds(rank.ended_ns);
  entry["core_dumped"] = rank.end->core_dumped;
  entry["ended_by_hvrun"] = rank.was_ended_by_hvrun;
  entry["never_joined"] = rank.never_joined;
  entry["has_left"] = rank.has_left;
  entry["has_lost_a_peer"] = rank.has_lost_a_peer;
  entry["core"] = text_or_null(rank.found.core);
  entry["out_of_memory"] = kMemoryNames[static_cast<std::size_t>(rank.found.out_of_memory)];
  entry["out_of_memory_by"] = text_or_null(rank.found.memory);
  return entry;
}

Json findings_json(const JobRecord& record) {
  Json list = Json::array();
  for (const RecordedFinding& finding : record.findings) {
    Json hosts = Json::array();
    for (const std::string& host : finding.hosts) hosts.push_back(printable(host, kMostText));
    list.push_back({{"verdict", printable(finding.verdict, kMostText)},
                    {"cannot_start", finding.cannot_start},
                    {"hosts", std::move(hosts)},
                    {"fact", printable(finding.fact, kMostText)},
                    {"when", printable(finding.when, kMostText)},
                    {"why", printable(finding.why, kMostText)},
                    {"mend", printable(finding.mend, kMostText)}});
  }
  return list;
}

Json standings_json(const JobRecord& record) {
  Json list = Json::array();
  for (const RecordedStanding& standing : record.standings) {
    Json groups = Json::array();
    for (const std::string& group : standing.groups) {
      Json lines = Json::array();
      for (const std::string& line : split(group, '\n'))
        lines.push_back(
            printable(line.substr(line.starts_with(kStackIndent) ? std::size(kStackIndent) - 1 : 0),
                      kMostText));
      groups.push_back(std::move(lines));
    }
    list.push_back({{"what", printable(standing.what, kMostText)}, {"groups", std::move(groups)}});
  }
  return list;
}

// Reads members of one object, each with a bound; what is not there or something else is the value
// that stands in for it.
class Members {
 public:
  explicit Members(const Json& object) : object_(object) {}

  const Json* find(const char* name) const {
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  std::string text(const char* name) const {
    const Json* found = find(name);
    return found && found->is_string() ? printable(found->get_ref<const std::string&>(), kMostText)
                                       : "";
  }
  bool flag(const char* name) const {
    const Json* found = find(name);
    return found && found->is_boolean() && found->get<bool>();
  }
  std::optional<std::uint64_t> number(const char* name, std::uint64_t most) const {
    const Json* found = find(name);
    if (!found || !found->is_number_unsigned()) return std::nullopt;
    const auto number = found->get<std::uint64_t>();
    return number <= most ? std::optional(number) : std::nullopt;
  }
  std::optional<int> index(const char* name, std::size_t size) const {
    const auto found = size == 0 ? std::nullopt : number(name, size - 1);
    return found ? std::optional(static_cast<int>(*found)) : std::nullopt;
  }
  double seconds(const char* name, double most) const {
    const Json* found = find(name);
    const double value = found && found->is_number() ? found->get<double>() : 0;
    return std::isfinite(value) && value >= 0 && value <= most ? value : 0;
  }
  const Json& array(const char* name) const {
    static const Json* const none = new Json(Json::array());
    const Json* found = find(name);
    return found && found->is_array() ? *found : *none;
  }

 private:
  const Json& object_;
};

constexpr double kMostSeconds = 4e9;  // of a job, and of the wall clock until 2096
constexpr std::uint64_t kMostCount = 1ull << 62;

std::int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

wire::StepTimes step_times_from(const Json* json) {
  if (!json) return {};
  const Members members(*json);
  const auto part = [&members](const char* name) {
    return static_cast<std::uint64_t>(nanoseconds(members.seconds(name, kMostSeconds)));
  };
  wire::StepTimes times;
  times.steps = members.number("steps", kMostCount).value_or(0);
  times.data_nanoseconds = part("data_seconds");
  times.exchange_nanoseconds = part("exchange_seconds");
  times.nanoseconds = times.data_nanoseconds + times.exchange_nanoseconds + part("compute_seconds");
  times.data_waits = members.number("data_waits", kMostCount).value_or(0);
  return times.is_plausible() ? times : wire::StepTimes{};
}

wire::PostMortem found_from(const Members& members) {
  wire::PostMortem found;
  found.core = members.text("core");
  found.memory = members.text("out_of_memory_by");
  const std::string name = members.text("out_of_memory");
  for (std::size_t i = 0; i < std::size(kMemoryNames); ++i)
    if (name == kMemoryNames[i]) found.out_of_memory = static_cast<wire::OutOfMemory>(i);
  return found;
}

std::string rank_from(const Json& json, JobRecord* record) {
  const Members members(json);
  const std::size_t number = record->ranks.size();
  const std::string place = "/ranks/" + std::to_string(number);
  if (members.number("rank", kMostRecordedRanks) != number)
    return place + ": its rank is not " + std::to_string(number);
  const auto host = members.index("host_index", record->hosts.size());
  if (!host) return place + ": no host_index that stands in /hosts";
  RecordedRank rank;
  rank.host = *host;
  rank.pid = static_cast<std::uint32_t>(members.number("pid", INT32_MAX).value_or(0));
  const auto code = members.number("exit_code", 255), signal = members.number("signal", 127);
  if (code || signal)
    rank.end = ExitStatus{signal.has_value(), static_cast<int>(signal ? *signal : *code),
                          signal && members.flag("core_dumped")};
  if (rank.end) {  // of these nothing is written of a rank whose end is not known
    rank.ended_ns = wall_nanoseconds(members.seconds("ended", kMostSeconds));
    rank.was_ended_by_hvrun = members.flag("ended_by_hvrun");
    rank.never_joined = members.flag("never_joined");
    rank.has_left = members.flag("has_left");
    rank.has_lost_a_peer = members.flag("has_lost_a_peer");
    rank.found = found_from(members);
  }
  rank.step_times = step_times_from(members.find("steps"));
  record->ranks.push_back(std::move(rank));
  return "";
}

// Every name once, and no more of them than ranks.
std::vector<int> ranks_from(const Json& array, std::size_t size) {
  std::map<int, bool> seen;
  for (const Json& each : array)
    if (each.is_number_unsigned() && each.get<std::uint64_t>() < size) seen[each.get<int>()] = true;
  std::vector<int> ranks;
  for (const auto& [rank, is_there] : seen) ranks.push_back(rank);
  return ranks;
}

std::string cause_from(const Json* json, JobRecord* record) {
  if (!json) return "";
  const Members members(*json);
  FailureCause cause;
  cause.consequences = ranks_from(members.array("consequences"), record->ranks.size());
  if (members.find("rank")) {
    cause.rank = members.index("rank", record->ranks.size());
    if (!cause.rank) return "/cause/rank: no rank that stands in /ranks";
    cause.reason = members.text("lost_as");
    cause.is_stopped = members.flag("is_stopped");
    cause.missed_at = members.text("missed_at");
    cause.left_before = members.index("left_before", record->ranks.size());
  } else {
    cause.host = members.index("host_index", record->hosts.size());
    if (!cause.host) return "/cause: neither a rank nor a host_index that stands in /hosts";
    cause.reason = members.text("reason");
    RecordedHost& host = record->hosts[static_cast<std::size_t>(*cause.host)];
    host.gave_up = members.flag("agent_gave_up");
    host.advice = members.text("advice");
  }
  cause.exit_code = record->exit_code;
  record->cause = std::move(cause);
  return "";
}

constexpr std::size_t kMostFindings = 1000;

std::vector<RecordedFinding> findings_from(const Json& array) {
  std::vector<RecordedFinding> findings;
  for (const Json& each : array) {
    if (findings.size() == kMostFindings) break;
    const Members members(each);
    RecordedFinding finding;
    finding.verdict = members.text("verdict");
    finding.cannot_start = members.flag("cannot_start");
    for (const Json& host : members.array("hosts"))
      if (host.is_string())
        finding.hosts.push_back(printable(host.get_ref<const std::string&>(), kMostText));
    finding.fact = members.text("fact");
    finding.when = members.text("when");
    finding.why = members.text("why");
    finding.mend = members.text("mend");
    findings.push_back(std::move(finding));
  }
  return findings;
}

constexpr std::size_t kMostStandings = 100, kMostGroups = 1000, kMostLines = 1000;

std::vector<std::string> groups_from(const Json& array) {
  std::vector<std::string> groups;
  for (const Json& lines : array) {
    if (groups.size() == kMostGroups) break;
    if (!lines.is_array()) continue;
    std::string text;
    std::size_t count = 0;
    for (const Json& line : lines) {
      if (!line.is_string() || ++count > kMostLines) continue;
      text += (count == 1 ? "" : std::string("\n") + kStackIndent) +
              printable(line.get_ref<const std::string&>(), kMostText);
    }
    groups.push_back(std::move(text));
  }
  return groups;
}

std::vector<RecordedStanding> standings_from(const Json& array) {
  std::vector<RecordedStanding> standings;
  for (const Json& each : array) {
    if (standings.size() == kMostStandings) break;
    const Members members(each);
    standings.push_back({members.text("what"), groups_from(members.array("groups"))});
  }
  return standings;
}

RunningProcess process_from(const Members& members) {
  return {static_cast<std::uint32_t>(members.number("pid", INT32_MAX).value_or(0)),
          members.text("host"), members.text("boot_id"), members.text("pid_namespace"),
          members.number("start_ticks", kMostCount).value_or(0)};
}

}  // namespace

std::string record_as_json(const JobRecord& record, const LastLines& last_lines) {
  Json json;
  json["version"] = 1;
  json["state"] = record.state;
  json["exit_code"] = record.exit_code;
  json["seconds"] = record.seconds;
  json["size"] = record.ranks.size();
  json["lost_output_bytes"] = record.lost_output_bytes;
  if (!record.error.empty()) json["error"] = printable(record.error, kMostText);
  if (!record.advice.empty()) json["advice"] = printable(record.advice, kMostText);
  json["begun"] = wall_seconds(record.begun_ns);
  json["command"] = Json::array();
  for (const std::string& word : record.command)
    json["command"].push_back(printable(word, kMostText));
  json["hvrun"] = {{"pid", record.hvrun.pid},
                   {"host", record.hvrun.host},
                   {"boot_id", record.hvrun.boot_id},
                   {"pid_namespace", record.hvrun.pid_namespace},
                   {"start_ticks", record.hvrun.start_ticks}};
  json["hosts"] = Json::array();
  for (const RecordedHost& host : record.hosts) json["hosts"].push_back(host.name);
  json["cause"] = cause_json(record, last_lines);
  json["findings"] = findings_json(record);
  json["not_probed"] = Json::array();
  for (const std::string& gap : record.not_probed)
    json["not_probed"].push_back(printable(gap, kMostText));
  json["stacks"] = standings_json(record);
  json["training"] = training_json(record.training());
  json["ranks"] = Json::array();
  for (std::size_t rank = 0; rank < record.ranks.size(); ++rank)
    json["ranks"].push_back(rank_json(record, static_cast<int>(rank)));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::variant<JobRecord, RecordProblem> record_from_json(std::string_view text) {
  if (text.size() > kMostRecordBytes) return RecordProblem{"it is larger than any job's"};
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return RecordProblem{"it is no JSON, or was cut off"};
  if (!json.is_object()) return RecordProblem{"it is no JSON object"};
  const Members members(json);
  if (members.number("version", UINT64_MAX) != 1u)
    return RecordProblem{"its version is not 1: it is another hvrun's, or no job's"};
  JobRecord record;
  record.state = members.text("state");
  if (record.state.empty()) return RecordProblem{"/state: not there"};
  record.exit_code = static_cast<int>(members.number("exit_code", 255).value_or(0));
  record.seconds = members.seconds("seconds", kMostSeconds);
  record.lost_output_bytes = members.number("lost_output_bytes", UINT64_MAX).value_or(0);
  record.error = members.text("error");
  record.advice = members.text("advice");
  record.begun_ns = wall_nanoseconds(members.seconds("begun", kMostSeconds));
  for (const Json& word : members.array("command"))
    if (word.is_string())
      record.command.push_back(printable(word.get_ref<const std::string&>(), kMostText));
  static const Json* const no_process = new Json(Json::object());
  const Json* process = members.find("hvrun");
  record.hvrun = process_from(Members(process ? *process : *no_process));
  for (const Json& name : members.array("hosts"))
    record.hosts.push_back(
        {name.is_string() ? printable(name.get_ref<const std::string&>(), 1000) : "?"});
  if (members.array("ranks").size() > kMostRecordedRanks)
    return RecordProblem{"/ranks: more than any job has"};
  for (const Json& rank : members.array("ranks"))
    if (std::string problem = rank_from(rank, &record); !problem.empty())
      return RecordProblem{std::move(problem)};
  if (std::string problem = cause_from(members.find("cause"), &record); !problem.empty())
    return RecordProblem{std::move(problem)};
  record.findings = findings_from(members.array("findings"));
  for (const Json& gap : members.array("not_probed"))
    if (gap.is_string() && record.not_probed.size() < kMostFindings)
      record.not_probed.push_back(printable(gap.get_ref<const std::string&>(), kMostText));
  record.standings = standings_from(members.array("stacks"));
  return record;
}

}  // namespace hv::launcher
