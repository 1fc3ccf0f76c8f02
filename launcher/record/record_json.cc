// SPDX-License-Identifier: Apache-2.0
#include "launcher/record/record_json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "launcher/record/bounded_json.h"
#include "launcher/record/end_text.h"
#include "launcher/record/record_version_1.h"
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
            {"is_long_enough", split->is_long},
            {"slowest_rank", split->slowest},
            {"step_seconds", whole},
            {"data_share", share(split->step.data_s)},
            {"compute_share", share(split->step.compute_s)},
            {"exchange_share", share(split->step.exchange_s)},
            {"step_seconds_without_bound", split->without_bound_s},
            {"others_wait_seconds", split->others_wait_s},
            {"slow_part", nullptr},
            {"is_data_measured", split->has_seen_data}};
  if (const Cause cause = split->late_by(); cause != Cause::kNone)
    json["slow_part"] = cause == Cause::kData ? "data" : "compute";
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

// Wall clock, rounded to microseconds: a double holds no more, and a record that is read must equal
// the one written.
double wall_seconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds / 1000) / 1e6;
}

std::int64_t wall_nanoseconds(double seconds) { return std::llround(seconds * 1e6) * 1000; }

constexpr const char* kMemoryNames[] = {"not_checked", "unknown", "no", "this_rank", "same_cgroup"};

// By wire::SigtermUse.
constexpr const char* kSigtermNames[] = {"", "handled", "ignored", "handled_by_descendant"};

// By LeftBehind.
constexpr const char* kLeftBehindNames[] = {"ends_soon", "nothing", "named", "unknown"};

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(printable(text, kMostText));
}

Json number_or_null(const std::optional<int>& number) {
  return number ? Json(*number) : Json(nullptr);
}

Json progress_json(const JobRecord& record) {
  const std::optional<JobProgress> progress = record.progress();
  if (!progress) return nullptr;
  Json json{{"steps", progress->steps},
            {"steps_per_second", nullptr},
            {"slowest_rank", number_or_null(progress->slowest_rank)},
            {"others_wait_seconds", progress->others_wait_s}};
  if (record.times.steps_per_second) json["steps_per_second"] = *record.times.steps_per_second;
  return json;
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
            {"agent_ended_job", host.gave_up},
            {"left_behind", kLeftBehindNames[static_cast<std::size_t>(host.left_behind)]},
            {"fix", text_or_null(host.advice)}};
  } else if (cause.rank) {
    Json lines = Json::array();
    for (const std::string& line : last_lines(*cause.rank))
      lines.push_back(printable(line, kMostLineBytes));
    json = {{"rank", *cause.rank},
            {"host", record.host_of(*cause.rank)},
            {"reason", cause_text(record, cause)},
            {"last_lines", lines},
            {"loss_reason", text_or_null(cause.reason)},
            {"is_stopped", cause.is_stopped},
            {"awaited_in_call", text_or_null(cause.awaited_in_call)},
            {"rank_left_before", number_or_null(cause.left_before)}};
  }
  json["consequences"] = cause.consequences;
  return json;
}

Json rank_json(const JobRecord& record, int number) {
  const RecordedRank& rank = record.ranks[static_cast<std::size_t>(number)];
  Json entry{{"rank", number},          {"host", record.host_of(number)},
             {"host_index", rank.host}, {"exit_code", nullptr},
             {"signal", nullptr},       {"step_times", nullptr}};
  entry["step_times"] = step_times_json(rank.step_times);
  entry["pid"] = rank.pid;
  if (!rank.end) return entry;
  entry[rank.end->by_signal ? "signal" : "exit_code"] = rank.end->code;
  entry["ended_at"] = wall_seconds(rank.ended_ns);
  entry["core_dumped"] = rank.end->core_dumped;
  entry["ended_by_hvrun"] = rank.was_ended_by_hvrun;
  entry["never_joined"] = rank.never_joined;
  entry["has_left"] = rank.has_left;
  entry["has_lost_a_peer"] = rank.has_lost_a_peer;
  entry["has_input"] = rank.has_input;
  entry["quiet_seconds"] = rank.quiet_s;
  entry["grace_seconds"] = rank.grace_s;
  entry["is_grace_stated"] = rank.is_grace_stated;
  entry["on_sigterm"] = text_or_null(kSigtermNames[static_cast<std::size_t>(rank.on_sigterm)]);
  entry["core"] = text_or_null(rank.found.core);
  entry["out_of_memory"] = kMemoryNames[static_cast<std::size_t>(rank.found.out_of_memory)];
  entry["out_of_memory_evidence"] = text_or_null(rank.found.memory);
  return entry;
}

Json findings_json(const JobRecord& record) {
  Json list = Json::array();
  for (const RecordedFinding& finding : record.findings) {
    Json hosts = Json::array();
    for (const std::string& host : finding.hosts) hosts.push_back(printable(host, kMostText));
    list.push_back({{"id", printable(finding.id, kMostText)},
                    {"cannot_start", finding.cannot_start},
                    {"hosts", std::move(hosts)},
                    {"fact", printable(finding.fact, kMostText)},
                    {"condition", printable(finding.condition, kMostText)},
                    {"why", printable(finding.why, kMostText)},
                    {"fix", printable(finding.fix, kMostText)}});
  }
  return list;
}

// Lost hosts that no second agent has swept.
Json unswept_json(const JobRecord& record) {
  Json list = Json::array();
  for (std::size_t i = 0; i < record.hosts.size(); ++i) {
    const RecordedHost& host = record.hosts[i];
    if (host.left_behind != LeftBehind::kUnknown) continue;
    list.push_back({{"host", host.name},
                    {"host_index", i},
                    {"reason", printable(host.unswept, kMostText)},
                    {"fix", printable(host.remedy, kMostText)}});
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
    list.push_back(
        {{"heading", printable(standing.heading, kMostText)}, {"groups", std::move(groups)}});
  }
  return list;
}

using Parsed = nlohmann::json;

// Reads members of one object, each within a limit. A missing or malformed member reads as a
// default.
class Members {
 public:
  explicit Members(const Parsed& object) : object_(object) {}

  const Parsed* find(const char* name) const {
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  std::string text(const char* name) const {
    const Parsed* found = find(name);
    return found && found->is_string() ? printable(found->get_ref<const std::string&>(), kMostText)
                                       : "";
  }
  bool flag(const char* name) const {
    const Parsed* found = find(name);
    return found && found->is_boolean() && found->get<bool>();
  }
  std::optional<std::uint64_t> number(const char* name, std::uint64_t most) const {
    const Parsed* found = find(name);
    if (!found || !found->is_number_unsigned()) return std::nullopt;
    const auto number = found->get<std::uint64_t>();
    return number <= most ? std::optional(number) : std::nullopt;
  }
  std::optional<int> index(const char* name, std::size_t size) const {
    const auto found = size == 0 ? std::nullopt : number(name, size - 1);
    return found ? std::optional(static_cast<int>(*found)) : std::nullopt;
  }
  double seconds(const char* name, double most) const {
    const Parsed* found = find(name);
    const double value = found && found->is_number() ? found->get<double>() : 0;
    return std::isfinite(value) && value >= 0 && value <= most ? value : 0;
  }
  const Parsed& array(const char* name) const {
    static const Parsed* const none = new Parsed(Parsed::array());
    const Parsed* found = find(name);
    return found && found->is_array() ? *found : *none;
  }

 private:
  const Parsed& object_;
};

constexpr double kMostSeconds = 4e9;  // for a job, and for the wall clock until 2096
constexpr std::uint64_t kMostCount = 1ull << 62;
constexpr std::uint64_t kMostRestarts = 1 << 20;
constexpr double kMostRate = 1e12;  // steps in a second

std::int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

wire::StepTimes step_times_from(const Parsed* json) {
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
  found.memory = members.text("out_of_memory_evidence");
  const std::string name = members.text("out_of_memory");
  for (std::size_t i = 0; i < std::size(kMemoryNames); ++i)
    if (name == kMemoryNames[i]) found.out_of_memory = static_cast<wire::OutOfMemory>(i);
  return found;
}

std::string rank_from(const Parsed& json, JobRecord* record) {
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
  if (rank.end) {  // rank_json() writes these only for a rank whose end is known
    rank.ended_ns = wall_nanoseconds(members.seconds("ended_at", kMostSeconds));
    rank.was_ended_by_hvrun = members.flag("ended_by_hvrun");
    rank.never_joined = members.flag("never_joined");
    rank.has_left = members.flag("has_left");
    rank.has_lost_a_peer = members.flag("has_lost_a_peer");
    rank.has_input = members.flag("has_input");
    rank.quiet_s = members.seconds("quiet_seconds", kMostSeconds);
    rank.grace_s = members.seconds("grace_seconds", kMostSeconds);
    rank.is_grace_stated = members.flag("is_grace_stated");
    const std::string use = members.text("on_sigterm");
    for (std::size_t i = 0; i < std::size(kSigtermNames); ++i)
      if (use == kSigtermNames[i]) rank.on_sigterm = static_cast<wire::SigtermUse>(i);
    rank.found = found_from(members);
  }
  rank.step_times = step_times_from(members.find("step_times"));
  record->ranks.push_back(std::move(rank));
  return "";
}

// Ranks below size, each once, ascending.
std::vector<int> ranks_from(const Parsed& array, std::size_t size) {
  std::set<int> ranks;
  for (const Parsed& each : array)
    if (each.is_number_unsigned() && each.get<std::uint64_t>() < size)
      ranks.insert(each.get<int>());
  return {ranks.begin(), ranks.end()};
}

// kUnknown comes with its reason, from "unswept".
LeftBehind left_behind_named(const std::string& name) {
  for (const LeftBehind left : {LeftBehind::kNothing, LeftBehind::kNamed})
    if (name == kLeftBehindNames[static_cast<std::size_t>(left)]) return left;
  return LeftBehind::kEndsSoon;
}

std::string cause_from(const Parsed* json, JobRecord* record) {
  if (!json) return "";
  const Members members(*json);
  FailureCause cause;
  cause.consequences = ranks_from(members.array("consequences"), record->ranks.size());
  if (members.find("rank")) {
    cause.rank = members.index("rank", record->ranks.size());
    if (!cause.rank) return "/cause/rank: no rank that stands in /ranks";
    cause.reason = members.text("loss_reason");
    cause.is_stopped = members.flag("is_stopped");
    cause.awaited_in_call = members.text("awaited_in_call");
    cause.left_before = members.index("rank_left_before", record->ranks.size());
  } else {
    cause.host = members.index("host_index", record->hosts.size());
    if (!cause.host) return "/cause: neither a rank nor a host_index that stands in /hosts";
    cause.reason = members.text("reason");
    RecordedHost& host = record->hosts[static_cast<std::size_t>(*cause.host)];
    host.gave_up = members.flag("agent_ended_job");
    host.left_behind = left_behind_named(members.text("left_behind"));
    host.advice = members.text("fix");
  }
  cause.exit_code = record->exit_code;
  record->cause = std::move(cause);
  return "";
}

void read_unswept(const Parsed& array, JobRecord* record) {
  for (const Parsed& each : array) {
    if (!each.is_object()) continue;
    const Members members(each);
    const std::optional<int> index = members.index("host_index", record->hosts.size());
    if (!index) continue;
    RecordedHost& host = record->hosts[static_cast<std::size_t>(*index)];
    host.left_behind = LeftBehind::kUnknown;
    host.unswept = members.text("reason");
    host.remedy = members.text("fix");
  }
}

constexpr std::size_t kMostFindings = 1000;

std::vector<RecordedFinding> findings_from(const Parsed& array) {
  std::vector<RecordedFinding> findings;
  for (const Parsed& each : array) {
    if (findings.size() == kMostFindings) break;
    const Members members(each);
    RecordedFinding finding;
    finding.id = members.text("id");
    finding.cannot_start = members.flag("cannot_start");
    for (const Parsed& host : members.array("hosts"))
      if (host.is_string())
        finding.hosts.push_back(printable(host.get_ref<const std::string&>(), kMostText));
    finding.fact = members.text("fact");
    finding.condition = members.text("condition");
    finding.why = members.text("why");
    finding.fix = members.text("fix");
    findings.push_back(std::move(finding));
  }
  return findings;
}

constexpr std::size_t kMostStandings = 100, kMostGroups = 1000, kMostLines = 1000;

std::vector<std::string> groups_from(const Parsed& array) {
  std::vector<std::string> groups;
  for (const Parsed& lines : array) {
    if (groups.size() == kMostGroups) break;
    if (!lines.is_array()) continue;
    std::string text;
    std::size_t count = 0;
    for (const Parsed& line : lines) {
      if (!line.is_string() || ++count > kMostLines) continue;
      text += (count == 1 ? "" : std::string("\n") + kStackIndent) +
              printable(line.get_ref<const std::string&>(), kMostText);
    }
    groups.push_back(std::move(text));
  }
  return groups;
}

std::vector<RecordedStanding> standings_from(const Parsed& array) {
  std::vector<RecordedStanding> standings;
  for (const Parsed& each : array) {
    if (standings.size() == kMostStandings) break;
    const Members members(each);
    standings.push_back({members.text("heading"), groups_from(members.array("groups"))});
  }
  return standings;
}

// A record that hvrun writes has 6 levels, 27 members at most in an object, and 33 values a rank.
constexpr JsonLimits kRecordLimits{
    .bytes = kMostRecordBytes, .depth = 16, .members = 64, .values = 6 << 20};

void read_progress(const Parsed* json, JobRecord* record) {
  const std::optional<Members> members = json ? std::optional(Members(*json)) : std::nullopt;
  if (members && members->find("steps_per_second"))
    record->times.steps_per_second = members->seconds("steps_per_second", kMostRate);
}

RunningProcess process_from(const Members& members) {
  return {static_cast<std::uint32_t>(members.number("pid", INT32_MAX).value_or(0)),
          members.text("host"), members.text("boot_id"), members.text("pid_namespace"),
          members.number("start_ticks", kMostCount).value_or(0)};
}

}  // namespace

Json json_of_record(const JobRecord& record, const LastLines& last_lines) {
  Json json;
  json["version"] = kRecordVersion;
  json["state"] = record.state;
  if (!record.is_running()) json["exit_code"] = record.exit_code;
  json["restarts"] = record.attempt.restarts;
  json["is_restarted"] = record.attempt.is_restarted;
  json["seconds"] = record.times.seconds;
  json["size"] = record.ranks.size();
  json["lost_output_bytes"] = record.lost_output_bytes;
  if (!record.error.empty()) json["error"] = printable(record.error, kMostText);
  if (!record.advice.empty()) json["fix"] = printable(record.advice, kMostText);
  json["started_at"] = wall_seconds(record.times.started_ns);
  json["written_at"] = wall_seconds(record.times.written_ns);
  if (record.is_running()) json["progress"] = progress_json(record);
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
  json["unswept"] = unswept_json(record);
  json["cause"] = cause_json(record, last_lines);
  json["findings"] = findings_json(record);
  json["not_checked"] = Json::array();
  for (const std::string& gap : record.not_checked)
    json["not_checked"].push_back(printable(gap, kMostText));
  json["stacks"] = standings_json(record);
  json["training"] = training_json(record.training());
  json["ranks"] = Json::array();
  for (std::size_t rank = 0; rank < record.ranks.size(); ++rank)
    json["ranks"].push_back(rank_json(record, static_cast<int>(rank)));
  return json;
}

std::string record_as_json(const JobRecord& record, const LastLines& last_lines) {
  const Json json = json_of_record(record, last_lines);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string record_as_json(const JobRecord& record) {
  return record_as_json(record, [](int) { return std::vector<std::string>(); });
}

std::variant<JobRecord, RecordProblem> record_from_json(std::string_view text) {
  auto parsed = parse_bounded(text, kRecordLimits);
  if (auto* problem = std::get_if<RecordProblem>(&parsed)) return std::move(*problem);
  Parsed& json = std::get<Parsed>(parsed);
  if (!json.is_object()) return RecordProblem{"it is no JSON object"};
  const Members members(json);
  const auto version = members.number("version", UINT64_MAX);
  if (version != 1u && version != kRecordVersion)
    return RecordProblem{
        "its version is neither 1 nor 2: another hvrun wrote it, or it is no job's"};
  if (version == 1u) upgrade_record_from_1(&json);
  JobRecord record;
  record.state = members.text("state");
  if (record.state.empty()) return RecordProblem{"/state: not there"};
  record.exit_code = static_cast<int>(members.number("exit_code", 255).value_or(0));
  record.attempt.restarts = static_cast<int>(members.number("restarts", kMostRestarts).value_or(0));
  record.attempt.is_restarted = members.flag("is_restarted");
  record.times.seconds = members.seconds("seconds", kMostSeconds);
  record.lost_output_bytes = members.number("lost_output_bytes", UINT64_MAX).value_or(0);
  record.error = members.text("error");
  record.advice = members.text("fix");
  record.times.started_ns = wall_nanoseconds(members.seconds("started_at", kMostSeconds));
  record.times.written_ns = wall_nanoseconds(members.seconds("written_at", kMostSeconds));
  if (record.is_running()) read_progress(members.find("progress"), &record);
  for (const Parsed& word : members.array("command"))
    if (word.is_string())
      record.command.push_back(printable(word.get_ref<const std::string&>(), kMostText));
  static const Parsed* const no_process = new Parsed(Parsed::object());
  const Parsed* process = members.find("hvrun");
  record.hvrun = process_from(Members(process ? *process : *no_process));
  if (members.array("hosts").size() > kMostRecordedRanks)
    return RecordProblem{"/hosts: more than any job has"};
  for (const Parsed& name : members.array("hosts"))
    record.hosts.push_back(
        {name.is_string() ? printable(name.get_ref<const std::string&>(), 1000) : "?"});
  if (members.array("ranks").size() > kMostRecordedRanks)
    return RecordProblem{"/ranks: more than any job has"};
  for (const Parsed& rank : members.array("ranks"))
    if (std::string problem = rank_from(rank, &record); !problem.empty())
      return RecordProblem{std::move(problem)};
  if (std::string problem = cause_from(members.find("cause"), &record); !problem.empty())
    return RecordProblem{std::move(problem)};
  read_unswept(members.array("unswept"), &record);
  record.findings = findings_from(members.array("findings"));
  for (const Parsed& gap : members.array("not_checked"))
    if (gap.is_string() && record.not_checked.size() < kMostFindings)
      record.not_checked.push_back(printable(gap.get_ref<const std::string&>(), kMostText));
  record.standings = standings_from(members.array("stacks"));
  return record;
}

}  // namespace hv::launcher
