// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/exit_summary.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "launcher/output/gather.h"
#include "launcher/supervise/training_split.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShownLines = 20;

std::string tenths_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", seconds);
  return text;
}

const RankEnd* end_of(const Job& job, int rank) {
  const auto found = job.policy->ends().find(rank);
  return found == job.policy->ends().end() ? nullptr : &found->second;
}

// "exit code 1", or why it was lost to the others.
std::string cause_text(const Job& job, const Verdict& verdict) {
  if (!verdict.reason.empty()) {
    return printable(verdict.reason, 1000) +
           (verdict.is_stopped ? "; hvrun found it stopped (SIGSTOP, or a debugger)"
                               : "; hvrun found it running");
  }
  const RankEnd* how = end_of(job, *verdict.rank);
  if (!verdict.missed_at.empty())
    return how->status.text() + " without " + verdict.missed_at + ", in which others wait for it";
  return how ? how->status.text() : "no report";
}

// The reason may be a sentence, so the time stands before it.
std::string how_it_went(const Job& job, const Verdict& verdict, const std::string& when) {
  const std::string cause = cause_text(job, verdict);
  if (!verdict.reason.empty()) return "was lost to the others after " + when + ": it " + cause;
  const RankEnd* how = end_of(job, *verdict.rank);
  if (!verdict.missed_at.empty()) return "ended after " + when + " with " + cause;
  return std::string(how && !how->failed() ? "was lost to the others: it " : "") + "ended with " +
         cause + " after " + when;
}

// What it did, as others saw it.
std::string how_it_left(const RankEnd& end) {
  const std::string ended = "ended with " + end.status.text();
  if (end.left_ns != 0) return "left the job (hvd.shutdown(), hvrun_shutdown), and " + ended;
  return ended + (end.never_joined ? wire::kHadNotJoined : wire::kNotShutDown);
}

// What may have made the cause fail, of which there is no proof.
std::string who_left_before(const Job& job, int rank) {
  const RankEnd& left = *end_of(job, rank);
  return "hvrun: before that rank " + std::to_string(rank) + " on host " + job.host_of(rank) +
         " had " + how_it_left(left) + ": if others still needed it, that is the reason\n  try: " +
         (left.never_joined ? "let every rank join (hvd.init(), hvrun_init), or start fewer ranks"
                            : "let every rank take as many steps, or join where one has fewer "
                              "(hvd.join(), hvrun_join)") +
         "\n";
}

// How the loader of programs ends, and a shell that does not find one.
constexpr int kNotLoaded = 127;

bool misses_a_library(const RankEnd* how, const std::vector<std::string>& lines) {
  return how && !how->status.by_signal && how->status.code == kNotLoaded &&
         std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
           return line.find("error while loading shared libraries") != std::string::npos;
         });
}

std::string advice_on(const Job& job, const Verdict& verdict,
                      const std::vector<std::string>& lines) {
  const RankEnd* how = end_of(job, *verdict.rank);
  if (misses_a_library(how, lines)) {
    return "install that library on " + job.host_of(*verdict.rank) +
           ", link the program with its folder as rpath (-Wl,-rpath,DIR), or pass "
           "-x LD_LIBRARY_PATH=DIR";
  }
  if (verdict.is_stopped) {
    return "find out what stopped it; HVRUN_PEER_TIMEOUT=0 lets the others wait for one that is "
           "being debugged";
  }
  if (!verdict.missed_at.empty())
    return "let every rank call MPI_Init and MPI_Finalize; a program without MPI is a job of its "
           "own, or has no MPI beside it (--wire-mpi=none)";
  if (!verdict.reason.empty())
    return std::string("look what it is stuck in") +
           (job.hosts.size() > 1 ? ", or at the network between the hosts" : "");
  return "";
}

std::string rank_failure(const Job& job, const Verdict& verdict, const JobEnd& end,
                         const LastLines& last_lines) {
  const int rank = *verdict.rank;
  const RankEnd* how = end_of(job, rank);
  std::string text = "hvrun: error: rank " + std::to_string(rank) + " on host " +
                     job.host_of(rank) + " " + how_it_went(job, verdict, tenths_text(end.seconds)) +
                     "\n";
  std::vector<std::string> lines = last_lines(rank);
  if (const std::string advice = advice_on(job, verdict, lines); !advice.empty())
    text += "  try: " + advice + "\n";
  if (verdict.left_before) text += who_left_before(job, *verdict.left_before);
  if (verdict.reason.empty() && how && how->status.by_signal && how->status.code == SIGKILL)
    text +=
        "hvrun: SIGKILL comes from a person or, where memory is short, from the kernel: dmesg on " +
        job.host_of(rank) + " tells which\n";
  if (lines.size() > kShownLines) lines.erase(lines.begin(), lines.end() - kShownLines);
  if (!lines.empty()) text += "hvrun: its last lines:\n";
  for (const std::string& line : lines) text += "    " + printable(line, 1000) + "\n";
  return text;
}

// "ranks 1-15 said the same": one error that many ranks ran into is read once.
std::string equals_of_cause(int cause, const std::vector<int>& others,
                            const LastLines& last_lines) {
  std::vector<std::pair<int, std::vector<std::string>>> lines{{cause, last_lines(cause)}};
  for (const int rank : others) lines.emplace_back(rank, last_lines(rank));
  for (GatheredText& group : gather(lines)) {
    if (std::erase(group.ranks, cause) != 0 && !group.ranks.empty())
      return "hvrun: " + rank_words(group.ranks) + " said the same\n";
  }
  return "";
}

std::string host_failure(const Job& job, int host, const std::string& reason) {
  const HostState& state = job.hosts[static_cast<std::size_t>(host)];
  return "hvrun: error: host " + state.target.name + " with " + rank_words(state.ranks) +
         " was lost: " + reason + "\n" +
         (state.gave_up_advice.empty() ? "" : "  try: " + state.gave_up_advice + "\n") +
         "hvrun: what still runs there ends by itself within seconds" +
         (state.gave_up ? "" : "; look at that host and its network") + "\n";
}

// "ranks 0-2 with exit code 1; rank 5 with ...": grouped by how they ended. Those that hvrun ended
// are left out.
std::string ends_of(const Job& job, const std::vector<int>& ranks) {
  std::map<std::string, std::vector<int>> groups;
  for (const int rank : ranks) {
    const RankEnd* how = end_of(job, rank);
    if (!how || how->signal_was_ours) continue;
    groups[how->status.text()].push_back(rank);
  }
  std::string text;
  for (const auto& [how, members] : groups) {
    text += (text.empty() ? "" : "; ") + rank_words(members) + " with " + how;
  }
  return text;
}

// Nothing says that a rank which ended like the cause, and has lost nobody, did so because of it.
bool ended_alike(const Job& job, const Verdict& verdict, int rank) {
  const RankEnd* cause = verdict.rank ? end_of(job, *verdict.rank) : nullptr;
  const RankEnd* how = end_of(job, rank);
  return cause && how && how->status.text() == cause->status.text() &&
         !job.policy->has_lost_a_peer(rank);
}

std::string other_ends(const Job& job, const Verdict& verdict) {
  std::vector<int> alike, because;
  for (const int rank : verdict.consequences)
    (ended_alike(job, verdict, rank) ? alike : because).push_back(rank);
  const std::string first = ends_of(job, alike), second = ends_of(job, because);
  return (first.empty() ? "" : "hvrun: also ended: " + first + "\n") +
         (second.empty() ? "" : "hvrun: as a consequence also ended: " + second + "\n");
}

std::optional<TrainingSplit> training_of(const Job& job) {
  std::vector<wire::StepTimes> times;
  for (const RankState& rank : job.ranks) times.push_back(rank.step_times);
  return split_training(times);
}

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

}  // namespace

std::string training_summary(const Job& job) {
  const std::optional<TrainingSplit> split = training_of(job);
  if (!split) return "";
  return training_text(*split,
                       {[&job](int rank) { return job.host_of(rank); }, job.hosts.size() > 1});
}

std::string summary_text(const Job& job, const JobEnd& end, const LastLines& last_lines) {
  std::string text;
  if (!end.verdict) return text;
  if (end.verdict->host) text += host_failure(job, *end.verdict->host, end.verdict->reason);
  if (end.verdict->rank) {
    text += rank_failure(job, *end.verdict, end, last_lines);
    text += equals_of_cause(*end.verdict->rank, end.verdict->consequences, last_lines);
  }
  return text + other_ends(job, *end.verdict);
}

std::string summary_json(const Job& job, const JobEnd& end, const LastLines& last_lines) {
  Json json;
  json["version"] = 1;
  json["state"] = end.state;
  json["exit_code"] = end.exit_code;
  json["seconds"] = end.seconds;
  json["size"] = job.plan.ranks.size();
  json["lost_output_bytes"] = end.lost_output_bytes;
  if (!end.error.empty()) json["error"] = printable(end.error, 10000);
  json["cause"] = nullptr;
  if (end.verdict && end.verdict->host) {
    json["cause"] = {{"host", job.hosts[static_cast<std::size_t>(*end.verdict->host)].target.name},
                     {"reason", printable(end.verdict->reason, 10000)}};
  } else if (end.verdict && end.verdict->rank) {
    const int rank = *end.verdict->rank;
    Json lines = Json::array();
    for (const std::string& line : last_lines(rank)) lines.push_back(printable(line, 1000));
    json["cause"] = {{"rank", rank},
                     {"host", job.host_of(rank)},
                     {"reason", cause_text(job, *end.verdict)},
                     {"last_lines", lines}};
  }
  json["training"] = training_json(training_of(job));
  json["ranks"] = Json::array();
  for (const PlannedRank& rank : job.plan.ranks) {
    const RankEnd* how = job.policy ? end_of(job, rank.identity.rank) : nullptr;
    Json entry{{"rank", rank.identity.rank},
               {"host", job.host_of(rank.identity.rank)},
               {"exit_code", nullptr},
               {"signal", nullptr},
               {"steps", nullptr}};
    if (how) entry[how->status.by_signal ? "signal" : "exit_code"] = how->status.code;
    const auto index = static_cast<std::size_t>(rank.identity.rank);
    if (index < job.ranks.size()) entry["steps"] = step_times_json(job.ranks[index].step_times);
    json["ranks"].push_back(entry);
  }
  return json.dump(2) + "\n";
}

}  // namespace hv::launcher
