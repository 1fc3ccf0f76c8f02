// SPDX-License-Identifier: Apache-2.0
#include "launcher/record/end_text.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "launcher/allocation/host_failures.h"
#include "launcher/allocation/host_names.h"
#include "launcher/output/gather.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// Limits for texts other than the cause's, which may follow from it.
constexpr std::size_t kMostOtherTexts = 5, kLinesOfOthers = 10;

// The reason may be a sentence, so the time stands before it.
std::string how_it_went(const JobRecord& record, const FailureCause& cause) {
  const std::string text = cause_text(record, cause),
                    when = format_duration(Seconds(record.times.seconds));
  if (!cause.reason.empty()) return "was lost to the others after " + when + ": it " + text;
  if (!cause.awaited_in_call.empty()) return "ended after " + when + " with " + text;
  const ExitStatus* how = record.end_of(*cause.rank);
  return std::string(how && how->clean() ? "was lost to the others: it " : "") + "ended with " +
         text + " after " + when;
}

// "left the job ..., and ended with exit code 0".
std::string how_it_left(const JobRecord& record, int rank) {
  const RecordedRank& left = record.ranks[static_cast<std::size_t>(rank)];
  const std::string ended = "ended with " + left.end.value_or(ExitStatus{}).text();
  if (left.has_left) return "left the job (hvd.shutdown(), hvrun_shutdown), and " + ended;
  return ended + (left.never_joined ? wire::kHadNotJoined : wire::kNotShutDown);
}

// A rank that left before may have made the cause fail; there is no proof.
std::string who_left_before(const JobRecord& record, int rank) {
  return "hvrun: before that rank " + std::to_string(rank) + " on host " + record.host_of(rank) +
         " had " + how_it_left(record, rank) +
         ": if others still needed it, that is the reason\n  try: " +
         (record.ranks[static_cast<std::size_t>(rank)].never_joined
              ? "let every rank join (hvd.init(), hvrun_init), or start fewer ranks"
              : "let every rank take as many steps, or join where one has fewer "
                "(hvd.join(), hvrun_join)") +
         "\n";
}

// Exit code of the program loader, and of a shell that does not find the program.
constexpr int kNotLoaded = 127;

bool misses_a_library(const ExitStatus* how, const std::vector<std::string>& lines) {
  return how && !how->by_signal && how->code == kNotLoaded &&
         std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
           return line.find("error while loading shared libraries") != std::string::npos;
         });
}

// Python's input() and its debugger end so without input. PyTorch writes "[rank1]: " before them.
bool misses_input(const std::vector<std::string>& lines) {
  return std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("EOFError: EOF when reading") != std::string::npos ||
           line.find("bdb.BdbQuit") != std::string::npos;
  });
}

std::string advice_on(const JobRecord& record, const FailureCause& cause,
                      const std::vector<std::string>& lines) {
  const bool is_found =
      std::any_of(record.findings.begin(), record.findings.end(),
                  [](const RecordedFinding& finding) { return finding.id == "library-missing"; });
  if (!is_found && misses_a_library(record.end_of(*cause.rank), lines)) {
    return "install that library on " + record.host_of(*cause.rank) +
           ", link the program with its folder as rpath (-Wl,-rpath,DIR), or pass "
           "-x LD_LIBRARY_PATH=DIR";
  }
  if (!record.ranks[static_cast<std::size_t>(*cause.rank)].has_input &&
      record.failed(*cause.rank) && misses_input(lines))
    return "--stdin=" + std::to_string(*cause.rank) +
           " hands hvrun's standard input to this rank and no other; without it a rank has "
           "/dev/null";
  if (cause.is_stopped) {
    return "find out what stopped it; HVRUN_PEER_TIMEOUT=0 lets the others wait for one that is "
           "being debugged";
  }
  if (!cause.awaited_in_call.empty())
    return "let every rank call MPI_Init and MPI_Finalize; a program without MPI is a job of its "
           "own, or has no MPI beside it (--wire-mpi=none)";
  if (!cause.reason.empty())
    return std::string("look what it is stuck in") +
           (record.hosts.size() > 1 ? ", or at the network between the hosts" : "");
  return "";
}

// The part of a memory shortage in a rank's end, as far as its agent could find out.
std::string memory_text(const JobRecord& record, int rank) {
  const wire::PostMortem& found = record.ranks[static_cast<std::size_t>(rank)].found;
  const ExitStatus* how = record.end_of(rank);
  const std::string basis =
      found.memory.empty() ? "" : ": " + printable(found.memory, wire::PostMortem::kMostWords);
  switch (found.out_of_memory) {
    case wire::OutOfMemory::kThisRank:
    case wire::OutOfMemory::kBesideIt:
      return std::string("hvrun: the kernel ended ") +
             (found.out_of_memory == wire::OutOfMemory::kThisRank ? "it" : "a process beside it") +
             " for want of memory" + basis +
             "\n  try: more memory for the job (Slurm: --mem), fewer ranks on a host, or smaller "
             "batches\n";
    case wire::OutOfMemory::kNo:
      if (!how || !how->by_signal || how->code != SIGKILL) break;
      return "hvrun: a person or a program killed it, not the kernel for want of memory" + basis +
             "\n";
    case wire::OutOfMemory::kNotAsked:
    case wire::OutOfMemory::kUnknown:
      if (!how || !how->by_signal || how->code != SIGKILL) break;
      return "hvrun: SIGKILL comes from a person or, where memory is short, from the kernel" +
             basis + "; dmesg on " + record.host_of(rank) + " tells which\n";
  }
  return "";
}

// Shorter silences are normal and not reported.
constexpr double kShortQuiet_s = 5;

// Ranks that a signal ended after they had written nothing for long.
std::string held_back_text(const JobRecord& record, const std::vector<int>& ranks) {
  std::vector<int> quiet;
  double least_s = HUGE_VAL;
  for (const int rank : ranks) {
    const ExitStatus* how = record.end_of(rank);
    const double quiet_s = record.ranks[static_cast<std::size_t>(rank)].quiet_s;
    if (!how || !how->by_signal || quiet_s < kShortQuiet_s) continue;
    quiet.push_back(rank);
    least_s = std::min(least_s, quiet_s);
  }
  if (quiet.empty()) return "";
  return "hvrun: " + ranges_of("rank", quiet) + " wrote nothing for " +
         format_duration(Seconds(least_s)) + (quiet.size() > 1 ? " or longer" : "") +
         " before that; C's printf holds text back where it writes to a pipe\n"
         "  try: --pty, or stdbuf -oL program\n";
}

// hvrun's own errors exit with these codes, too.
std::string own_code_text(const JobRecord& record, int rank) {
  const ExitStatus* how = record.end_of(rank);
  const bool is_ambiguous = how && !how->by_signal &&
                            how->code >= static_cast<int>(ErrorKind::kUsage) &&
                            how->code <= static_cast<int>(ErrorKind::kHostLost);
  if (!is_ambiguous) return "";
  return "hvrun: " + std::to_string(how->code) +
         " is the program's own exit code, which hvrun passes on\n";
}

std::string use_text(wire::SigtermUse use, bool is_one) {
  const std::string they = is_one ? "; it" : "; they";
  switch (use) {
    case wire::SigtermUse::kHandled:
      return they + " caught SIGTERM";
    case wire::SigtermUse::kIgnored:
      return they + " ignored SIGTERM";
    case wire::SigtermUse::kHandledByDescendant:
      return std::string("; only descendants of ") + (is_one ? "it" : "them") + " caught SIGTERM";
    default:
      return "";
  }
}

// Ranks that SIGTERM did not end in time.
std::string killed_text(const JobRecord& record) {
  std::map<std::tuple<wire::SigtermUse, double, bool>, std::vector<int>> killed;
  for (std::size_t rank = 0; rank < record.ranks.size(); ++rank)
    if (const RecordedRank& one = record.ranks[rank]; one.grace_s > 0)
      killed[{one.on_sigterm, one.grace_s, one.is_grace_stated}].push_back(static_cast<int>(rank));
  std::string text;
  for (const auto& [how, ranks] : killed) {
    const auto [use, grace_s, is_stated] = how;
    std::vector<std::string> hosts;
    for (const int rank : ranks)
      if (hosts.empty() || hosts.back() != record.host_of(rank))
        hosts.push_back(record.host_of(rank));
    text += "hvrun: SIGKILL ended " + ranges_of("rank", ranks) + " (" + named_hosts_text(hosts) +
            (is_stated ? ") after --grace " : ") after ") + format_duration(Seconds(grace_s)) +
            use_text(use, ranks.size() == 1) + "\n";
  }
  return text;
}

std::string rank_failure(const JobRecord& record, const FailureCause& cause,
                         const LastLines& last_lines) {
  const int rank = *cause.rank;
  std::string text = "hvrun: error: " + failure_line(record) + "\n";
  if (const std::string advice = advice_on(record, cause, last_lines(rank)); !advice.empty())
    text += "  try: " + advice + "\n";
  if (cause.left_before) text += who_left_before(record, *cause.left_before);
  if (cause.reason.empty()) {
    const std::string& core = record.ranks[static_cast<std::size_t>(rank)].found.core;
    if (!core.empty()) text += "hvrun: " + printable(core, wire::PostMortem::kMostWords) + "\n";
    text +=
        own_code_text(record, rank) + memory_text(record, rank) + held_back_text(record, {rank});
  }
  return text;
}

std::string host_failure(const JobRecord& record, int host) {
  const RecordedHost& lost = record.hosts[static_cast<std::size_t>(host)];
  std::vector<std::string> parts;
  if (lost.left_behind == LeftBehind::kEndsSoon)
    parts.emplace_back("what still runs there ends by itself within seconds");
  if (lost.left_behind == LeftBehind::kNothing && !lost.gave_up)
    parts.emplace_back("nothing of the job runs there any more");
  if (!lost.gave_up) parts.emplace_back("look at that host and its network");
  return "hvrun: error: " + failure_line(record) + "\n" +
         (lost.advice.empty() ? "" : "  try: " + lost.advice + "\n") +
         (parts.empty() ? "" : "hvrun: " + join(parts, "; ") + "\n");
}

// Lost hosts on which processes of the job may be left, equal reasons once.
std::string unswept_text(const JobRecord& record) {
  std::vector<HostFailure> unswept;
  for (const RecordedHost& host : record.hosts)
    if (host.left_behind == LeftBehind::kUnknown)
      unswept.push_back({host.name, Error(ErrorKind::kHostLost,
                                          printable(host.unswept, kMostLineBytes), host.remedy)});
  std::string text;
  for (const FoldedFailure& folded : fold_failures(unswept))
    text += "hvrun: processes of this job may still run on " + named_hosts_text(folded.hosts) +
            ": " + folded.text + "\n  try: " + folded.hint + "\n";
  return text;
}

// "ranks 0-2 with exit code 1; rank 5 with ...": groups ranks by how they ended; omits ranks that
// hvrun ended.
std::string ends_of(const JobRecord& record, const std::vector<int>& ranks) {
  std::map<std::string, std::vector<int>> groups;
  for (const int rank : ranks) {
    const ExitStatus* how = record.end_of(rank);
    if (!how || record.ranks[static_cast<std::size_t>(rank)].was_ended_by_hvrun) continue;
    groups[how->text()].push_back(rank);
  }
  std::string text;
  for (const auto& [how, members] : groups) {
    text += (text.empty() ? "" : "; ") + ranges_of("rank", members) + " with " + how;
  }
  return text;
}

// Such a rank is no proven consequence: it ended like the cause and had lost no peer.
bool ended_alike(const JobRecord& record, const FailureCause& cause, int rank) {
  const ExitStatus* cause_end = cause.rank ? record.end_of(*cause.rank) : nullptr;
  const ExitStatus* how = record.end_of(rank);
  return cause_end && how && how->text() == cause_end->text() &&
         !record.ranks[static_cast<std::size_t>(rank)].has_lost_a_peer;
}

std::string other_ends(const JobRecord& record, const FailureCause& cause) {
  std::vector<int> alike, because;
  for (const int rank : cause.consequences)
    (ended_alike(record, cause, rank) ? alike : because).push_back(rank);
  const std::string first = ends_of(record, alike), second = ends_of(record, because);
  return (first.empty() ? "" : "hvrun: also ended: " + first + "\n") +
         (second.empty() ? "" : "hvrun: as a consequence also ended: " + second + "\n");
}

// Ranks whose last lines may explain the end: the cause, and ranks that failed for another reason
// than a lost peer.
std::vector<Speaker> speakers_of(const JobRecord& record, const FailureCause& cause) {
  std::vector<Speaker> speakers;
  const auto add = [&](int rank) {
    speakers.push_back(
        {rank, record.ranks[static_cast<std::size_t>(rank)].pid, record.host_of(rank)});
  };
  if (cause.rank) add(*cause.rank);
  for (const int rank : cause.consequences) {
    const RecordedRank& other = record.ranks[static_cast<std::size_t>(rank)];
    if (!other.has_lost_a_peer && !other.was_ended_by_hvrun) add(rank);
  }
  return speakers;
}

std::string block(const std::string& heading, const std::vector<std::string>& lines,
                  std::size_t most) {
  std::string text = "hvrun: " + heading + "\n";
  for (std::size_t i = lines.size() - std::min(lines.size(), most); i < lines.size(); ++i)
    text += "    " + printable(lines[i], kMostLineBytes) + "\n";
  return text;
}

std::string output_heading(const GatheredText& group, int whose) {
  return ranges_of("rank", group.ranks) + " said" +
         (group.is_said_by_all ? ":" : ", here as rank " + std::to_string(whose) + ":");
}

}  // namespace

std::string last_lines_text(const std::vector<Speaker>& speakers, const FirstSpeaker& first,
                            const LastLines& last_lines) {
  std::vector<std::pair<int, std::vector<std::string>>> lines;
  for (const Speaker& speaker : speakers)
    lines.emplace_back(speaker.rank, last_lines(speaker.rank));
  std::string text;
  std::vector<GatheredText> groups = gather_alike(lines, speakers);
  const auto own = std::find_if(groups.begin(), groups.end(), [&](const GatheredText& group) {
    return std::binary_search(group.ranks.begin(), group.ranks.end(), first.rank);
  });
  if (own != groups.end()) {
    const bool is_alone = own->ranks.size() == 1 && !first.is_named;
    const std::string heading = is_alone ? "its last lines:" : output_heading(*own, first.rank);
    text += first.is_above ? "hvrun: " + heading + " see above\n"
                           : block(heading, last_lines(first.rank), SIZE_MAX);
    groups.erase(own);
  }
  std::vector<int> omitted;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (i < kMostOtherTexts) {
      text += block(output_heading(groups[i], groups[i].ranks.front()), groups[i].lines,
                    kLinesOfOthers);
    } else {
      omitted.insert(omitted.end(), groups[i].ranks.begin(), groups[i].ranks.end());
    }
  }
  std::sort(omitted.begin(), omitted.end());
  if (!omitted.empty()) {
    text += "hvrun: and " + std::to_string(groups.size() - kMostOtherTexts) + " more texts, of " +
            ranges_of("rank", omitted) + "\n";
  }
  return text;
}

std::string cause_text(const JobRecord& record, const FailureCause& cause) {
  if (!cause.reason.empty()) {
    return printable(cause.reason, 1000) +
           (cause.is_stopped ? "; hvrun found it stopped (SIGSTOP, or a debugger)"
                             : "; hvrun found it running");
  }
  const ExitStatus* how = record.end_of(*cause.rank);
  if (!cause.awaited_in_call.empty())
    return (how ? how->text() : "no report") + " without " + cause.awaited_in_call +
           ", in which others wait for it";
  return how ? how->text() : "no report";
}

std::string failure_line(const JobRecord& record) {
  if (!record.cause) return record.error.substr(0, record.error.find('\n'));
  const FailureCause& cause = *record.cause;
  if (!cause.host)
    return "rank " + std::to_string(*cause.rank) + " on host " + record.host_of(*cause.rank) + " " +
           how_it_went(record, cause);
  const int host = *cause.host;
  const RecordedHost& lost = record.hosts[static_cast<std::size_t>(host)];
  const std::string what = lost.name + " with " + ranges_of("rank", record.ranks_on(host));
  return (lost.gave_up ? "the job was ended on host " + what : "host " + what + " was lost") +
         ": " + cause.reason;
}

std::string training_summary(const JobRecord& record) {
  const std::optional<TrainingSplit> split = record.training();
  if (!split) return "";
  return training_text(
      *split, {[&record](int rank) { return record.host_of(rank); }, record.hosts.size() > 1});
}

std::string findings_text(const JobRecord& record, const std::string& failure) {
  std::string text;
  for (const RecordedFinding& finding : record.findings) {
    const auto shown = [](const std::string& member) { return printable(member, kMostLineBytes); };
    const std::size_t colon = finding.fact.find(": ");
    const bool is_known = colon != std::string::npos &&
                          failure.find(finding.fact.substr(colon + 2)) != std::string::npos;
    text += "hvrun: ";
    if (is_known)
      text += shown(finding.fact.substr(0, colon)) + ": " + shown(finding.condition) + "  [" +
              shown(finding.id) + "]\n";
    else
      text += std::string(finding.cannot_start ? "cannot start: " : "harms: ") +
              shown(finding.fact) + "\n  why: " + shown(finding.why) +
              (finding.fix.empty() ? "" : "\n  try: " + shown(finding.fix)) + "  [" +
              shown(finding.id) + "]\n";
  }
  for (const std::string& gap : record.not_checked)
    text += "hvrun: not looked at: " + printable(gap, kMostLineBytes) + "\n";
  return text;
}

std::string standing_text(const RecordedStanding& standing) {
  std::string text = standing.heading;
  for (const std::string& group : standing.groups) text += "\n  " + group;
  return text;
}

std::string end_text(const JobRecord& record, const LastLines& last_lines, bool is_cause_above) {
  if (!record.cause) {
    std::vector<int> all(record.ranks.size());
    std::iota(all.begin(), all.end(), 0);
    return held_back_text(record, all) + killed_text(record) + unswept_text(record);
  }
  const FailureCause& cause = *record.cause;
  std::string text;
  if (cause.host) text += host_failure(record, *cause.host);
  if (cause.rank) text += rank_failure(record, cause, last_lines);
  text += last_lines_text(speakers_of(record, cause),
                          {cause.rank.value_or(-1), false, is_cause_above}, last_lines);
  return text + other_ends(record, cause) + killed_text(record) + unswept_text(record);
}

}  // namespace hv::launcher
