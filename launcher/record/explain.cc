// SPDX-License-Identifier: Apache-2.0
#include "launcher/record/explain.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "launcher/output/gather.h"
#include "launcher/record/end_words.h"
#include "launcher/record/record_json.h"
#include "src/base/text.h"
#include "src/process/signals.h"

namespace hv::launcher {
namespace {

using Json = nlohmann::ordered_json;

// What ends a program, as its runtime tells it. Anywhere in the last lines:
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
// In one of the very last ones, for programs also go on after such words:
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

// What is known of the job, where its end is not.
struct Unended {
  std::optional<JobRecord> record{};  // as it was begun
  std::string heading{};
};

std::string process_words(const RunningProcess& process) {
  return "process " + std::to_string(process.pid) + " on host " + process.host;
}

std::string job_heading(const JobRecord& record) {
  const std::string hvrun = process_words(record.hvrun);
  switch (still_runs(record.hvrun)) {
    case StillRuns::kYes:
      return "hvrun: the job still runs: hvrun is " + hvrun +
             "; what follows is by what its ranks have written\n";
    case StillRuns::kNo:
      return "hvrun: error: hvrun did not see the end of this job: " + hvrun +
             " was killed, or could not write it; what follows is by what its ranks wrote last\n";
    case StillRuns::kCannotTell:
      break;
  }
  return "hvrun: the end of this job is not recorded: hvrun was " + hvrun + "; 'ps -p " +
         std::to_string(record.hvrun.pid) +
         "' there tells whether it still runs; what follows is by what its ranks wrote last\n";
}

std::string error_words(const JobRecord& record) {
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

std::string end_words(const JobRecord& record, const LastLines& last_lines) {
  const std::string error = error_words(record), training = training_summary(record),
                    end = end_text(record, last_lines);
  std::string stands;
  for (const RecordedStanding& standing : record.standings)
    stands += "hvrun: " + standing_text(standing) + "\n";
  if (record.state == "ok") {
    char after[48];
    std::snprintf(after, sizeof after, "after %.1f s", record.seconds);
    return "hvrun: the job ended well " + std::string(after) + ": there is nothing to explain\n" +
           stands + training;
  }
  if (error.empty() && end.empty())
    return stands + "hvrun: the job ended as '" + record.state + "', with exit code " +
           std::to_string(record.exit_code) + "\n" + training;
  return stands + error + training + end + findings_text(record, error + end);
}

// Behind the words that end a heading: where, if not in the folder itself.
std::string place_of_ranks(const JobFolder& folder) {
  if (folder.ranks.empty()) return "";
  const std::string& path = folder.ranks.begin()->second;
  const std::string above = path.substr(0, path.rfind('/'));
  return above == folder.path ? "" : ", in " + printable(above, 1000);
}

// The record, or what there is in its place.
Unended begun_of(const JobFolder& folder, std::optional<JobRecord>* ended) {
  std::string problem = folder.record_problem;
  if (folder.record) {
    auto read = record_from_json(*folder.record);
    if (auto* record = std::get_if<JobRecord>(&read)) {
      if (record->state == kStateRunning) {
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

std::string words_of_files(const JobFolder& folder, const std::vector<Speaker>& speakers) {
  const LastLines last_lines = [&folder](int rank) { return folder.last_lines(rank); };
  std::vector<Speaker> erring, others;
  int first = -1;
  for (const Speaker& speaker : speakers) {
    const std::vector<std::string> lines = last_lines(speaker.rank);
    if (!end_in_an_error(lines)) {
      if (folder.unreadable.count(speaker.rank) == 0) others.push_back(speaker);
      continue;
    }
    erring.push_back(speaker);
    if (first < 0 && !speak_of_a_lost_peer(lines)) first = speaker.rank;
  }
  const std::string well = others.empty() ? ""
                                          : "hvrun: what " + ranges_of("rank", ranks_of(others)) +
                                                " wrote ends in no error\n";
  if (erring.empty()) return speakers.empty() ? "hvrun: no rank has written anything\n" : well;
  if (first < 0) first = erring.front().rank;
  return "hvrun: what " + ranges_of("rank", ranks_of(erring)) + " wrote ends in an error\n" +
         said_by(erring, {first, true}, last_lines) + well;
}

std::string warnings_of(const JobFolder& folder) {
  std::string text;
  for (const auto& [rank, trouble] : folder.unreadable)
    text += "hvrun: warning: rank " + std::to_string(rank) + ": " + trouble + "\n";
  return text;
}

}  // namespace

bool end_in_an_error(const std::vector<std::string>& lines) {
  const auto last = lines.end() - static_cast<std::ptrdiff_t>(std::min(lines.size(), kVeryLast));
  return std::any_of(lines.begin(), lines.end(),
                     [](const std::string& line) { return has_one_of(line, kFatal); }) ||
         std::any_of(last, lines.end(),
                     [](const std::string& line) { return has_one_of(line, kErrors); });
}

bool speak_of_a_lost_peer(const std::vector<std::string>& lines) {
  return std::any_of(lines.begin(), lines.end(),
                     [](const std::string& line) { return has_one_of(line, kLostPeer); });
}

std::string explanation_as_text(const JobFolder& folder) {
  std::optional<JobRecord> ended;
  const Unended begun = begun_of(folder, &ended);
  const std::string warnings = warnings_of(folder);
  if (ended) return warnings + end_words(*ended, [&](int rank) { return folder.last_lines(rank); });
  return begun.heading + warnings + words_of_files(folder, speakers_in(folder, begun.record));
}

std::string explanation_as_json(const JobFolder& folder) {
  std::optional<JobRecord> ended;
  const Unended begun = begun_of(folder, &ended);
  const LastLines last_lines = [&folder](int rank) { return folder.last_lines(rank); };
  if (ended) return record_as_json(*ended, last_lines);
  std::vector<Speaker> speakers = speakers_in(folder, begun.record);
  std::vector<std::pair<int, std::vector<std::string>>> lines;
  for (const Speaker& speaker : speakers)
    lines.emplace_back(speaker.rank, last_lines(speaker.rank));
  Json json{
      {"version", 1}, {"state", begun.record ? kStateRunning : "unknown"}, {"still_runs", nullptr}};
  if (begun.record) {
    const StillRuns runs = still_runs(begun.record->hvrun);
    if (runs != StillRuns::kCannotTell) json["still_runs"] = runs == StillRuns::kYes;
    json["hvrun"] = {{"pid", begun.record->hvrun.pid}, {"host", begun.record->hvrun.host}};
  }
  json["unreadable"] = Json::object();
  for (const auto& [rank, trouble] : folder.unreadable)
    json["unreadable"][std::to_string(rank)] = trouble;
  json["texts"] = Json::array();
  for (const GatheredText& group : gather_alike(lines, speakers)) {
    Json shown = Json::array();
    for (const std::string& line : group.lines) shown.push_back(printable(line, kMostOfLine));
    json["texts"].push_back({{"ranks", group.ranks},
                             {"is_error", end_in_an_error(group.lines)},
                             {"is_of_lost_peer", speak_of_a_lost_peer(group.lines)},
                             {"lines", shown}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hv::launcher
