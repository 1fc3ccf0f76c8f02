// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/absence_report.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

#include "launcher/supervise/timeouts.h"
#include "src/base/bounded_seconds.h"
#include "src/base/clock.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kNamedHosts = 8;
// Of seconds on their way; who waits less long does not wait.
constexpr Duration kRounding = std::chrono::microseconds(1);
// By wire::Meeting. Of MPI's later ones nobody knows which calls they belong to.
constexpr const char* kCalls[wire::kMeetings] = {"hvrun_init", "MPI_Init",
                                                 "MPI_Init, MPI_Finalize"};

// "ranks 2-3 on host b, rank 5 on host c"
std::string named(const Job& job, std::vector<std::uint32_t> HostState::*which) {
  std::vector<std::string> groups;
  for (const HostState& host : job.hosts) {
    const std::vector<std::uint32_t>& ranks = host.*which;
    if (!host.is_there() || ranks.empty()) continue;
    groups.push_back(ranges_of("rank", {ranks.begin(), ranks.end()}) + " on host " +
                     host.target.name);
  }
  const std::size_t more = groups.size() > kNamedHosts ? groups.size() - kNamedHosts : 0;
  groups.resize(groups.size() - more);
  return join(groups, ", ") + (more ? " and those of " + std::to_string(more) + " more hosts" : "");
}

std::vector<int> absent_ranks(const Job& job) {
  std::vector<int> absent;
  for (const HostState& host : job.hosts)
    if (host.is_there()) absent.insert(absent.end(), host.absent.begin(), host.absent.end());
  return absent;
}

}  // namespace

std::string absence_words(const Job& job) { return named(job, &HostState::absent); }

std::string two_mpis_words(const Job& job) {
  const std::string by_pmix = named(job, &HostState::in_pmix),
                    by_pmi = named(job, &HostState::in_pmi);
  if (by_pmix.empty() || by_pmi.empty()) return "";
  return "in MPI_Init " + by_pmix + " came by PMIx (as Open MPI's programs do), and " + by_pmi +
         " by PMI-1 (as MPICH's): programs of different MPIs cannot be one world, and wait for "
         "each other for ever";
}

std::string absence_advice(const Job& job, wire::Meeting meeting) {
  for (const HostState& host : job.hosts) {
    if (!host.is_there() || host.absent.empty() || host.absent[0] >= job.ranks.size()) continue;
    const std::uint32_t pid = job.ranks[host.absent[0]].pid;
    const std::string at = std::to_string(pid);
    return "look what rank " + std::to_string(host.absent[0]) + " does, on host " +
           host.target.name + (pid == 0 ? "" : ": py-spy dump --pid " + at + ", or gdb -p " + at);
  }
  return std::string("let every rank call ") +
         (meeting == wire::Meeting::kHvrunInit ? "hvrun_init and hvrun_shutdown as often"
                                               : "MPI_Init and MPI_Finalize, once") +
         " as the others";
}

// Waits that overlap are one, of which every host tells as its own ranks began.
bool AbsenceReport::Wait::is_told(Duration how_long) const {
  return now() - how_long < told_at && how_long <= told;
}

void AbsenceReport::fence_stalled(const wire::FenceStalled& stall) {
  Wait& wait = waits_[static_cast<std::size_t>(stall.meeting)];
  const Duration waited = bounded_seconds(stall.waited_s);
  if (wait.is_told(waited) && !stall.is_too_long) return;
  wait.is_asked = true;
  wait.is_too_long = wait.is_too_long || stall.is_too_long;
  wait.waited = std::max(wait.waited, waited);
  begin_asking();
}

void AbsenceReport::begun_by_two_ways() {
  have_two_ways_begun_ = true;
  begin_asking();
}

void AbsenceReport::begin_asking() {
  if (std::exchange(is_asking_, true)) return;
  boost::asio::co_spawn(job_.executor, ask(), boost::asio::detached);
}

// Something else ends the job.
bool AbsenceReport::is_past_caring() const {
  return job_.stop || job_.ending || (job_.policy && job_.policy->failed());
}

// The ranks may have met since, and even wait anew.
bool AbsenceReport::still_waits(wire::Meeting meeting, bool is_too_long) const {
  const Duration limit = is_too_long ? job_.stall_end : job_.stall_limit;
  return !job_.all_hosts([limit, meeting](const HostState& host) {
    return !host.is_there() ||
           host.waited[static_cast<std::size_t>(meeting)] < std::max(limit - kRounding, kRounding);
  });
}

// Answers of one moment: all hosts', and nobody has met meanwhile.
boost::asio::awaitable<void> AbsenceReport::hear_all() {
  for (;;) {
    const std::size_t passed = job_.fences ? job_.fences->passed() : 0;
    const bool have_answered = co_await job_.query(now() + kAbsenceTimeout);
    if (is_past_caring()) co_return;
    if (have_answered && (!job_.fences || job_.fences->passed() == passed)) co_return;
  }
}

// What was told up to now, and is not yet said; what comes while all are asked is asked of anew.
std::array<AbsenceReport::Wait, wire::kMeetings> AbsenceReport::take_asked() {
  std::array<Wait, wire::kMeetings> asked = waits_;
  for (std::size_t i = 0; i < wire::kMeetings; ++i) {
    asked[i].is_asked =
        waits_[i].is_asked && (waits_[i].is_too_long || !waits_[i].is_told(waits_[i].waited));
    waits_[i].is_asked = waits_[i].is_too_long = false;
    waits_[i].waited = Duration::zero();
  }
  return asked;
}

boost::asio::awaitable<void> AbsenceReport::ask() {
  for (auto asked = take_asked(); !is_past_caring(); asked = take_asked()) {
    const bool is_asked =
        std::any_of(asked.begin(), asked.end(), [](const Wait& wait) { return wait.is_asked; });
    if (!std::exchange(have_two_ways_begun_, false) && !is_asked) break;
    co_await hear_all();
    if (is_past_caring() || end_two_mpis()) break;
    for (std::size_t i = 0; i < wire::kMeetings; ++i) {
      const auto meeting = static_cast<wire::Meeting>(i);
      if (asked[i].is_asked && !is_past_caring() && still_waits(meeting, asked[i].is_too_long))
        tell(meeting, asked[i]);
    }
  }
  is_asking_ = false;
}

bool AbsenceReport::end_two_mpis() {
  const std::string words = two_mpis_words(job_);
  if (words.empty()) return false;
  job_.request_stop({StopRequest::Kind::kTwoMpis, 0, words,
                     "programs that are linked with the same MPI (ldd says with which), or a job "
                     "for each MPI"});
  return true;
}

void AbsenceReport::tell(wire::Meeting meeting, const Wait& wait) {
  const auto index = static_cast<std::size_t>(meeting);
  waits_[index].told_at = now();
  waits_[index].told = wait.waited;
  const std::string absent = absence_words(job_);
  const std::string words =
      "ranks have waited over " + seconds_text(wait.waited) + " to meet the others (" +
      kCalls[index] + "); " +
      (absent.empty() ? "all wait, at different meetings" : "not there: " + absent);
  if (wait.is_too_long) {
    job_.request_stop({StopRequest::Kind::kStalled, 0,
                       words + ": the job ends (HVRUN_STALL_SHUTDOWN_SECONDS)",
                       absence_advice(job_, meeting)});
  } else {
    warn_("warning: " + words + "\n  try: " + absence_advice(job_, meeting) +
          "; HVRUN_STALL_SECONDS sets when this is told");
    look_(absent_ranks(job_), wait.waited);
  }
}

}  // namespace hv::launcher
