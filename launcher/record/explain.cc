// SPDX-License-Identifier: Apache-2.0
#include "launcher/record/explain.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "launcher/output/gather.h"
#include "launcher/record/end_text.h"
#include "launcher/record/record_json.h"
#include "src/base/clock.h"
#include "src/base/text.h"
#include "src/process/signals.h"

namespace hv::launcher {
namespace {

using Json = nlohmann::ordered_json;

// Messages of a runtime about what ended its program, anywhere in the last lines.
constexpr const char* kFatal[] = {"Traceback (most recent call last)",
                                  "terminate called",
                                  "Segmentation fault",
                                  "Bus error",
                                  "Floating point exception",
                                  "Fatal Python error",
                                  "core dumped",
                                  "Assertion `",
                                  "error while loading shared libraries",
                                  "*** Process received signal ***",
                                  "*** stack smashing detected",
                                  "MPI_ABORT was invoked",
                                  "panicked at",
                                  "AddressSanitizer",
                                  "forrtl: severe"};
// Messages in one of the very last lines only, because programs also continue after them.
constexpr std::size_t kVeryLast = 5;
constexpr const char* kErrors[] = {"rror:",   "xception:", "FATAL",         "fatal:", "Killed",
                                   "Aborted", "not found", "out of memory", "error ", "ERROR"};
constexpr const char* kLostPeer[] = {
    "PeerLost",      "HorovodInternalError",  "closed by peer",
    "reset by peer", "closed by remote peer", "remote process exited or there was a network error",
    "Broken pipe"};

template <class Words>
bool has_one_of(const std::string& line, const Words& words) {
  return std::any_of(std::begin(words), std::end(words),
                     [&line](const char* word) { return line.find(word) != std::string::npos; });
}

// A job whose end is not recorded.
struct UnfinishedJob {
  std::optional<JobRecord> record{};  // as written at the start
  std::string heading{};
};

std::string process_text(const RunningProcess& process) {
  return "process " + std::to_string(process.pid) + " on host " + process.host;
}

// Since hvrun wrote the record; none: version 1 does not say. The clock of another machine may be
// behind this one's or ahead of it.
std::optional<double> age_s(const JobRecord& record) {
  if (record.times.written_ns == 0) return std::nullopt;
  return 1e-9 * static_cast<double>(wall_clock_ns() - record.times.written_ns);
}

// hvrun has not ended as far as can be known, and its record is new. Without an age, hvrun's
// process decides.
bool is_running_now(const JobRecord& record, StillRuns hvrun) {
  if (hvrun == StillRuns::kNo) return false;
  const std::optional<double> age = age_s(record);
  return age ? std::abs(*age) <= static_cast<double>(kRecordIsStale.count())
             : hvrun == StillRuns::kYes;
}

// "12 s ago"
std::string ago_text(double age) {
  return format_duration(Seconds(std::round(std::max(age, 0.0)))) + " ago";
}

// A line of how far the job came, by its newest record, where its end is not recorded; or "".
std::string last_sign(const JobRecord& record) {
  const std::optional<double> age = age_s(record);
  if (!age) return "";
  std::string text = "hvrun: its last sign was " + ago_text(*age) + ", " +
                     format_duration(Seconds(record.times.seconds)) + " after its start";
  const std::optional<JobProgress> progress = record.progress();
  if (!progress) return text + "\n";
  text += ": " + std::to_string(progress->steps) + " steps";
  if (record.times.steps_per_second) {
    const double steps = *record.times.steps_per_second;
    char number[64];
    std::snprintf(number, sizeof number, steps < 999.5 ? ", %.3g a second" : ", %.0f a second",
                  steps);
    text += number;
  }
  if (progress->slowest_rank) {
    text += "; rank " + std::to_string(*progress->slowest_rank) + " on host " +
            record.host_of(*progress->slowest_rank) + " is the slowest: the others wait " +
            format_duration(Seconds(progress->others_wait_s)) + " a step for it";
  }
  return text + "\n";
}

std::string job_heading(const JobRecord& record) {
  const std::string hvrun = process_text(record.hvrun);
  const StillRuns runs = still_runs(record.hvrun);
  if (is_running_now(record, runs)) {
    return "hvrun: the job still runs: hvrun is " + hvrun +
           "; what follows is by what its ranks have written\n" + last_sign(record);
  }
  switch (runs) {
    case StillRuns::kYes:
      return "hvrun: warning: " + hvrun +
             " is this job's hvrun, and has not renewed job.json: it " +
             "is stopped, or cannot write there; what follows is by what its ranks have written\n" +
             last_sign(record);
    case StillRuns::kNo:
      return "hvrun: error: hvrun did not see the end of this job: " + hvrun +
             " was killed, or could not write it; what follows is by what its ranks wrote last\n" +
             last_sign(record);
    case StillRuns::kCannotTell:
      break;
  }
  return "hvrun: the end of this job is not recorded: hvrun was " + hvrun + "; 'ps -p " +
         std::to_string(record.hvrun.pid) +
         "' there tells whether it still runs; what follows is by what its ranks wrote last\n" +
         last_sign(record);
}

std::string error_text(const JobRecord& record) {
  if (!record.error.empty()) {
    return "hvrun: error: " + record.error + "\n" +
           (record.advice.empty() ? "" : "  try: " + record.advice + "\n");
  }
  constexpr int kBySignal = 128;
  if (record.state == "interrupted" && record.exit_code > kBySignal)
    return "hvrun: ended by " + signal_text(record.exit_code - kBySignal) + "\n";
  if (record.state == "output_closed") return "hvrun: who read its output went away\n";
  return "";
}

std::string recorded_end_text(const JobRecord& record, const LastLines& last_lines) {
  const std::string error = error_text(record), training = training_summary(record),
                    end = end_text(record, last_lines);
  std::string stands;
  for (const RecordedStanding& standing : record.standings)
    stands += "hvrun: " + standing_text(standing) + "\n";
  if (record.state == "ok")
    return "hvrun: the job ended well after " + format_duration(Seconds(record.times.seconds)) +
           ": there is nothing to explain\n" + stands + training;
  if (error.empty() && end.empty())
    return stands + "hvrun: the job ended as '" + record.state + "', with exit code " +
           std::to_string(record.exit_code) + "\n" + training;
  const std::string next = record.attempt.is_restarted
                               ? "hvrun: after that the job was to start again (--restarts)\n"
                               : "";
  return stands + error + training + end + findings_text(record, error + end) + next;
}

// ", in DIR/sub": the directory of the ranks' files, if it is not the job's.
std::string place_of_ranks(const JobFolder& folder) {
  if (folder.ranks.empty()) return "";
  const std::string& path = folder.ranks.begin()->second;
  const std::string above = path.substr(0, path.rfind('/'));
  return above == folder.path ? "" : ", in " + printable(above, 1000);
}

// Sets *ended, or returns what is known without a recorded end.
UnfinishedJob unfinished_job(const JobFolder& folder, std::optional<JobRecord>* ended) {
  std::string problem = folder.record_problem;
  if (folder.record) {
    auto read = record_from_json(*folder.record);
    if (auto* record = std::get_if<JobRecord>(&read)) {
      if (record->is_running()) {
        std::string heading = job_heading(*record);
        return {std::move(*record), std::move(heading)};
      }
      *ended = std::move(*record);
      return {};
    }
    problem = std::get<RecordProblem>(read).what;
  }
  const std::string place = printable(folder.path, 1000);
  return {std::nullopt, problem.empty() ? "hvrun: no job.json is in " + place +
                                              ", so what follows is by what its ranks wrote last" +
                                              place_of_ranks(folder) + "\n"
                                        : "hvrun: warning: " + place + "/job.json: " + problem +
                                              "; what follows is by what its ranks wrote last\n"};
}

std::vector<Speaker> speakers_in(const JobFolder& folder, const std::optional<JobRecord>& record) {
  std::vector<Speaker> speakers;
  for (const auto& [rank, path] : folder.ranks) {
    const bool is_known = record && static_cast<std::size_t>(rank) < record->ranks.size();
    if (record && !is_known) continue;  // an earlier job's, which had more ranks
    speakers.push_back({rank});
    if (!is_known) continue;
    speakers.back().pid = record->ranks[static_cast<std::size_t>(rank)].pid;
    speakers.back().host = record->host_of(rank);
  }
  return speakers;
}

std::vector<int> ranks_of(const std::vector<Speaker>& speakers) {
  std::vector<int> ranks;
  for (const Speaker& speaker : speakers) ranks.push_back(speaker.rank);
  return ranks;
}

std::string text_of_files(const JobFolder& folder, const std::vector<Speaker>& speakers) {
  const LastLines last_lines = [&folder](int rank) { return folder.last_lines(rank); };
  std::vector<Speaker> erring, others;
  int first = -1;
  for (const Speaker& speaker : speakers) {
    const std::vector<std::string> lines = last_lines(speaker.rank);
    if (!have_fatal_error(lines)) {
      if (folder.unreadable.count(speaker.rank) == 0) others.push_back(speaker);
      continue;
    }
    erring.push_back(speaker);
    if (first < 0 && !report_lost_peer(lines)) first = speaker.rank;
  }
  const std::string well = others.empty() ? ""
                                          : "hvrun: what " + ranges_of("rank", ranks_of(others)) +
                                                " wrote ends in no error\n";
  if (erring.empty()) return speakers.empty() ? "hvrun: no rank has written anything\n" : well;
  if (first < 0) first = erring.front().rank;
  return "hvrun: what " + ranges_of("rank", ranks_of(erring)) + " wrote ends in an error\n" +
         last_lines_text(erring, {first, true}, last_lines) + well;
}

// How the attempts before this one ended; the last ones, where there are many.
std::string restarts_text(const JobFolder& folder) {
  constexpr std::size_t kMostShown = 10;
  const std::vector<std::string>& earlier = folder.earlier;
  if (earlier.empty()) return "";
  std::string text = "hvrun: the job was started " + count_of(earlier.size() + 1, "time") +
                     "; the last attempt, which follows, is in " + printable(folder.path, 1000) +
                     "\n";
  std::size_t number = earlier.size() > kMostShown ? earlier.size() - kMostShown : 0;
  for (; number < earlier.size(); ++number)
    text += "  attempt " + std::to_string(number + 1) + ": " +
            printable(earlier[number], kMostLineBytes) + "\n";
  return text;
}

// Members of a job whose end is not recorded.
void add_record(const JobRecord& record, Json* json) {
  const Json recorded = json_of_record(record, [](int) { return std::vector<std::string>(); });
  const StillRuns runs = still_runs(record.hvrun);
  if (is_running_now(record, runs)) (*json)["state"] = recorded["state"];
  if (runs != StillRuns::kCannotTell) (*json)["still_runs"] = runs == StillRuns::kYes;
  (*json)["hvrun"] = recorded["hvrun"];
  const std::optional<double> age = age_s(record);
  if (!age) return;
  (*json)["age_seconds"] = *age;
  for (const char* const name : {"seconds", "progress"}) (*json)[name] = recorded[name];
}

std::string warnings_of(const JobFolder& folder) {
  std::string text;
  for (const auto& [rank, trouble] : folder.unreadable)
    text += "hvrun: warning: rank " + std::to_string(rank) + ": " + trouble + "\n";
  return text;
}

}  // namespace

bool have_fatal_error(const std::vector<std::string>& lines) {
  const auto last = lines.end() - static_cast<std::ptrdiff_t>(std::min(lines.size(), kVeryLast));
  return std::any_of(lines.begin(), lines.end(),
                     [](const std::string& line) { return has_one_of(line, kFatal); }) ||
         std::any_of(last, lines.end(),
                     [](const std::string& line) { return has_one_of(line, kErrors); });
}

bool report_lost_peer(const std::vector<std::string>& lines) {
  return std::any_of(lines.begin(), lines.end(),
                     [](const std::string& line) { return has_one_of(line, kLostPeer); });
}

std::string explanation_as_text(const JobFolder& folder) {
  std::optional<JobRecord> ended;
  const UnfinishedJob unfinished = unfinished_job(folder, &ended);
  const std::string warnings = restarts_text(folder) + warnings_of(folder);
  if (ended)
    return warnings + recorded_end_text(*ended, [&](int rank) { return folder.last_lines(rank); });
  return unfinished.heading + warnings +
         text_of_files(folder, speakers_in(folder, unfinished.record));
}

std::string explanation_as_json(const JobFolder& folder) {
  std::optional<JobRecord> ended;
  const UnfinishedJob unfinished = unfinished_job(folder, &ended);
  const LastLines last_lines = [&folder](int rank) { return folder.last_lines(rank); };
  if (ended) return record_as_json(*ended, last_lines);
  std::vector<Speaker> speakers = speakers_in(folder, unfinished.record);
  std::vector<std::pair<int, std::vector<std::string>>> lines;
  for (const Speaker& speaker : speakers)
    lines.emplace_back(speaker.rank, last_lines(speaker.rank));
  Json json{{"version", kRecordVersion}, {"state", "unknown"}, {"still_runs", nullptr}};
  if (unfinished.record) add_record(*unfinished.record, &json);
  json["unreadable"] = Json::object();
  for (const auto& [rank, trouble] : folder.unreadable)
    json["unreadable"][std::to_string(rank)] = trouble;
  json["texts"] = Json::array();
  for (const GatheredText& group : gather_alike(lines, speakers)) {
    Json shown = Json::array();
    for (const std::string& line : group.lines) shown.push_back(printable(line, kMostLineBytes));
    json["texts"].push_back({{"ranks", group.ranks},
                             {"is_error", have_fatal_error(group.lines)},
                             {"is_lost_peer", report_lost_peer(group.lines)},
                             {"lines", shown}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hv::launcher
