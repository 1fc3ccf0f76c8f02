// SPDX-License-Identifier: Apache-2.0
#include "launcher/record/end_words.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <map>

#include "launcher/output/gather.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// Of texts other than the cause's, which may follow from it.
constexpr std::size_t kMostOtherTexts = 5, kLinesOfOthers = 10;

std::string tenths_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", seconds);
  return text;
}

// The reason may be a sentence, so the time stands before it.
std::string how_it_went(const JobRecord& record, const FailureCause& cause) {
  const std::string text = cause_text(record, cause), when = tenths_text(record.seconds);
  if (!cause.reason.empty()) return "was lost to the others after " + when + ": it " + text;
  if (!cause.missed_at.empty()) return "ended after " + when + " with " + text;
  const ExitStatus* how = record.end_of(*cause.rank);
  return std::string(how && how->clean() ? "was lost to the others: it " : "") + "ended with " +
         text + " after " + when;
}

// What it did, as others saw it.
std::string how_it_left(const JobRecord& record, int rank) {
  const RecordedRank& left = record.ranks[static_cast<std::size_t>(rank)];
  const std::string ended = "ended with " + left.end.value_or(ExitStatus{}).text();
  if (left.has_left) return "left the job (hvd.shutdown(), hvrun_shutdown), and " + ended;
  return ended + (left.never_joined ? wire::kHadNotJoined : wire::kNotShutDown);
}

// What may have made the cause fail, of which there is no proof.
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

// How the loader of programs ends, and a shell that does not find one.
constexpr int kNotLoaded = 127;

bool misses_a_library(const ExitStatus* how, const std::vector<std::string>& lines) {
  return how && !how->by_signal && how->code == kNotLoaded &&
         std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
           return line.find("error while loading shared libraries") != std::string::npos;
         });
}

std::string advice_on(const JobRecord& record, const FailureCause& cause,
                      const std::vector<std::string>& lines) {
  const auto says_it = [](const RecordedFinding& one) { return one.verdict == "library-missing"; };
  const bool is_said = std::any_of(record.findings.begin(), record.findings.end(), says_it);
  if (!is_said && misses_a_library(record.end_of(*cause.rank), lines)) {
    return "install that library on " + record.host_of(*cause.rank) +
           ", link the program with its folder as rpath (-Wl,-rpath,DIR), or pass "
           "-x LD_LIBRARY_PATH=DIR";
  }
  if (cause.is_stopped) {
    return "find out what stopped it; HVRUN_PEER_TIMEOUT=0 lets the others wait for one that is "
           "being debugged";
  }
  if (!cause.missed_at.empty())
    return "let every rank call MPI_Init and MPI_Finalize; a program without MPI is a job of its "
           "own, or has no MPI beside it (--wire-mpi=none)";
  if (!cause.reason.empty())
    return std::string("look what it is stuck in") +
           (record.hosts.size() > 1 ? ", or at the network between the hosts" : "");
  return "";
}

// What ended it, as far as its agent could find out.
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
      return "hvrun: a person or a program killed it: the kernel did not for want of memory" +
             basis + "\n";
    case wire::OutOfMemory::kNotAsked:
    case wire::OutOfMemory::kUnknown:
      if (!how || !how->by_signal || how->code != SIGKILL) break;
      return "hvrun: SIGKILL comes from a person or, where memory is short, from the kernel" +
             basis + "; dmesg on " + record.host_of(rank) + " tells which\n";
  }
  return "";
}

std::string rank_failure(const JobRecord& record, const FailureCause& cause,
                         const LastLines& last_lines) {
  const int rank = *cause.rank;
  std::string text = "hvrun: error: rank " + std::to_string(rank) + " on host " +
                     record.host_of(rank) + " " + how_it_went(record, cause) + "\n";
  if (const std::string advice = advice_on(record, cause, last_lines(rank)); !advice.empty())
    text += "  try: " + advice + "\n";
  if (cause.left_before) text += who_left_before(record, *cause.left_before);
  if (cause.reason.empty()) {
    const std::string& core = record.ranks[static_cast<std::size_t>(rank)].found.core;
    if (!core.empty()) text += "hvrun: " + printable(core, wire::PostMortem::kMostWords) + "\n";
    text += memory_text(record, rank);
  }
  return text;
}

std::string host_failure(const JobRecord& record, int host, const std::string& reason) {
  const RecordedHost& lost = record.hosts[static_cast<std::size_t>(host)];
  return "hvrun: error: host " + lost.name + " with " + ranges_of("rank", record.ranks_on(host)) +
         " was lost: " + reason + "\n" +
         (lost.advice.empty() ? "" : "  try: " + lost.advice + "\n") +
         "hvrun: what still runs there ends by itself within seconds" +
         (lost.gave_up ? "" : "; look at that host and its network") + "\n";
}

// "ranks 0-2 with exit code 1; rank 5 with ...": grouped by how they ended. Those that hvrun ended
// are left out.
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

// Nothing says that a rank which ended like the cause, and has lost nobody, did so because of it.
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

// Whose words may explain the end: the cause's, and theirs who failed and did not just lose a peer.
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
    text += "    " + printable(lines[i], kMostOfLine) + "\n";
  return text;
}

std::string output_heading(const GatheredText& group, int whose) {
  return ranges_of("rank", group.ranks) + " said" +
         (group.is_said_by_all ? ":" : ", here as rank " + std::to_string(whose) + ":");
}

}  // namespace

std::string said_by(const std::vector<Speaker>& speakers, const Telling& telling,
                    const LastLines& last_lines) {
  std::vector<std::pair<int, std::vector<std::string>>> lines;
  for (const Speaker& speaker : speakers)
    lines.emplace_back(speaker.rank, last_lines(speaker.rank));
  std::string text;
  std::vector<GatheredText> groups = gather_alike(lines, speakers);
  const auto own = std::find_if(groups.begin(), groups.end(), [&](const GatheredText& group) {
    return std::binary_search(group.ranks.begin(), group.ranks.end(), telling.first);
  });
  if (own != groups.end()) {
    const bool is_alone = own->ranks.size() == 1 && !telling.names_first;
    text += block(is_alone ? "its last lines:" : output_heading(*own, telling.first),
                  last_lines(telling.first), SIZE_MAX);
    groups.erase(own);
  }
  std::vector<int> untold;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (i < kMostOtherTexts) {
      text += block(output_heading(groups[i], groups[i].ranks.front()), groups[i].lines,
                    kLinesOfOthers);
    } else {
      untold.insert(untold.end(), groups[i].ranks.begin(), groups[i].ranks.end());
    }
  }
  std::sort(untold.begin(), untold.end());
  if (!untold.empty()) {
    text += "hvrun: and " + std::to_string(groups.size() - kMostOtherTexts) + " more texts, of " +
            ranges_of("rank", untold) + "\n";
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
  if (!cause.missed_at.empty())
    return (how ? how->text() : "no report") + " without " + cause.missed_at +
           ", in which others wait for it";
  return how ? how->text() : "no report";
}

std::string training_summary(const JobRecord& record) {
  const std::optional<TrainingSplit> split = record.training();
  if (!split) return "";
  return training_text(
      *split, {[&record](int rank) { return record.host_of(rank); }, record.hosts.size() > 1});
}

std::string findings_text(const JobRecord& record, const std::string& told) {
  std::string text;
  for (const RecordedFinding& finding : record.findings) {
    const auto said = [](const std::string& words) { return printable(words, kMostOfLine); };
    const std::size_t colon = finding.fact.find(": ");
    const bool is_told = colon != std::string::npos &&
                         told.find(finding.fact.substr(colon + 2)) != std::string::npos;
    text += "hvrun: ";
    if (is_told)
      text += said(finding.fact.substr(0, colon)) + ": " + said(finding.when) + "  [" +
              said(finding.verdict) + "]\n";
    else
      text += std::string(finding.cannot_start ? "cannot start: " : "harms: ") +
              said(finding.fact) + "\n  why: " + said(finding.why) +
              (finding.mend.empty() ? "" : "\n  try: " + said(finding.mend)) + "  [" +
              said(finding.verdict) + "]\n";
  }
  for (const std::string& gap : record.not_probed)
    text += "hvrun: not looked at: " + printable(gap, kMostOfLine) + "\n";
  return text;
}

std::string standing_text(const RecordedStanding& standing) {
  std::string text = standing.what;
  for (const std::string& group : standing.groups) text += "\n  " + group;
  return text;
}

std::string end_text(const JobRecord& record, const LastLines& last_lines) {
  if (!record.cause) return "";
  const FailureCause& cause = *record.cause;
  std::string text;
  if (cause.host) text += host_failure(record, *cause.host, cause.reason);
  if (cause.rank) text += rank_failure(record, cause, last_lines);
  text += said_by(speakers_of(record, cause), {cause.rank.value_or(-1)}, last_lines);
  return text + other_ends(record, cause);
}

}  // namespace hv::launcher
