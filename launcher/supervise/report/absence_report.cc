// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/report/absence_report.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

#include "launcher/allocation/host_names.h"
#include "launcher/supervise/timeouts.h"
#include "src/base/bounded_seconds.h"
#include "src/base/clock.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// Seconds in a message have a rounding error: shorter waits do not count.
constexpr Duration kRounding = std::chrono::microseconds(1);
// By wire::Meeting. Later fences of MPI may belong to either call.
constexpr const char* kCalls[wire::kMeetings] = {"hvrun_init", "MPI_Init",
                                                 "MPI_Init, MPI_Finalize"};

// "ranks 2-3,5 on hosts b,c"
std::string describe_ranks(const Job& job, std::vector<std::uint32_t> wire::QueryReply::*which) {
  std::vector<std::string> hosts;
  std::vector<int> all;
  for (const Host& host : job.members()) {
    const std::vector<std::uint32_t>& ranks = host.answers.ranks.*which;
    if (!host.has_agent() || ranks.empty()) continue;
    hosts.push_back(host.target.name);
    all.insert(all.end(), ranks.begin(), ranks.end());
  }
  if (all.empty()) return "";
  std::sort(all.begin(), all.end());
  return ranges_of("rank", all) + " on " + named_hosts_text(hosts);
}

std::vector<int> absent_ranks(const Job& job) {
  std::vector<int> absent;
  for (const Host& host : job.members()) {
    const std::vector<std::uint32_t>& ranks = host.answers.ranks.absent;
    if (host.has_agent()) absent.insert(absent.end(), ranks.begin(), ranks.end());
  }
  return absent;
}

}  // namespace

std::string describe_absent(const Job& job) {
  return describe_ranks(job, &wire::QueryReply::absent);
}

std::string describe_two_mpis(const Job& job) {
  const std::string by_pmix = describe_ranks(job, &wire::QueryReply::in_pmix);
  const std::string by_pmi = describe_ranks(job, &wire::QueryReply::in_pmi);
  if (by_pmix.empty() || by_pmi.empty()) return "";
  return "in MPI_Init " + by_pmix + " came by PMIx (as Open MPI's programs do), and " + by_pmi +
         " by PMI-1 (as MPICH's): programs of different MPIs cannot be one world, and wait for "
         "each other for ever";
}

std::string absence_advice(const Job& job, wire::Meeting meeting, bool ends_the_job) {
  for (const Host& host : job.members()) {
    const std::vector<std::uint32_t>& absent = host.answers.ranks.absent;
    if (!host.has_agent() || absent.empty() || absent[0] >= job.slots.count()) continue;
    const std::uint32_t pid = job.slots.of_rank(static_cast<int>(absent[0])).pid;
    const std::string at = std::to_string(pid);
    const std::string look =
        "look what rank " + std::to_string(absent[0]) + " does, on host " + host.target.name;
    if (ends_the_job)
      return look + "; HVRUN_STALL_SHUTDOWN_SECONDS=0 lets the others wait meanwhile";
    return look + (pid == 0 ? "" : ": py-spy dump --pid " + at + ", or gdb -p " + at);
  }
  return std::string("let every rank call ") +
         (meeting == wire::Meeting::kHvrunInit ? "hvrun_init and hvrun_shutdown as often"
                                               : "MPI_Init and MPI_Finalize, once") +
         " as the others";
}

// Waits that overlap are one wait: each host counts it from the time when its own ranks began.
bool AbsenceReport::Wait::is_reported(Duration how_long) const {
  return now() - how_long < reported_at && how_long <= reported;
}

void AbsenceReport::fence_stalled(const wire::FenceStalled& stall) {
  Wait& wait = waits_[static_cast<std::size_t>(stall.meeting)];
  const Duration waited = bounded_seconds(stall.waited_s);
  if (wait.is_reported(waited) && !stall.is_too_long) return;
  wait.is_due = true;
  wait.is_too_long = wait.is_too_long || stall.is_too_long;
  wait.waited = std::max(wait.waited, waited);
  begin_queries();
}

void AbsenceReport::both_mpis_begun() {
  have_both_mpis_begun_ = true;
  begin_queries();
}

void AbsenceReport::begin_queries() {
  if (std::exchange(is_querying_, true)) return;
  boost::asio::co_spawn(job_.executor, query_and_report(), boost::asio::detached);
}

// Something else ends the job.
bool AbsenceReport::is_obsolete() const {
  return job_.stop() || job_.stage.is_ending() || (job_.policy && job_.policy->failed());
}

// The wait may be over when all agents have answered, and another one may have begun.
bool AbsenceReport::still_waits(wire::Meeting meeting, bool is_too_long) const {
  const Duration limit = is_too_long ? job_.knobs.stall_end : job_.knobs.stall_limit;
  return !job_.all_hosts([limit, meeting](const Host& host) {
    const Duration waited =
        bounded_seconds(host.answers.ranks.waited_s[static_cast<std::size_t>(meeting)]);
    return !host.has_agent() || waited < std::max(limit - kRounding, kRounding);
  });
}

// Repeats the query until all hosts have answered and no fence has been passed meanwhile, so that
// the answers belong together.
boost::asio::awaitable<void> AbsenceReport::query_all() {
  for (;;) {
    const std::size_t passed = job_.fences ? job_.fences->passed() : 0;
    const bool have_answered = co_await job_.query(now() + kAbsenceTimeout);
    if (is_obsolete()) co_return;
    if (have_answered && (!job_.fences || job_.fences->passed() == passed)) co_return;
  }
}

// The waits that the user has to see. Reports that arrive during the query begin another one.
std::array<AbsenceReport::Wait, wire::kMeetings> AbsenceReport::take_due() {
  std::array<Wait, wire::kMeetings> due = waits_;
  for (std::size_t i = 0; i < wire::kMeetings; ++i) {
    due[i].is_due =
        waits_[i].is_due && (waits_[i].is_too_long || !waits_[i].is_reported(waits_[i].waited));
    waits_[i].is_due = waits_[i].is_too_long = false;
    waits_[i].waited = Duration::zero();
  }
  return due;
}

boost::asio::awaitable<void> AbsenceReport::query_and_report() {
  for (auto due = take_due(); !is_obsolete(); due = take_due()) {
    const bool is_due =
        std::any_of(due.begin(), due.end(), [](const Wait& wait) { return wait.is_due; });
    if (!std::exchange(have_both_mpis_begun_, false) && !is_due) break;
    co_await query_all();
    if (is_obsolete() || end_two_mpis()) break;
    for (std::size_t i = 0; i < wire::kMeetings; ++i) {
      const auto meeting = static_cast<wire::Meeting>(i);
      if (due[i].is_due && !is_obsolete() && still_waits(meeting, due[i].is_too_long))
        report(meeting, due[i]);
    }
  }
  is_querying_ = false;
}

bool AbsenceReport::end_two_mpis() {
  const std::string text = describe_two_mpis(job_);
  if (text.empty()) return false;
  job_.request_stop({StopReason::Kind::kCannotStart, 0, text,
                     "programs that are linked with the same MPI (ldd says with which), or a job "
                     "for each MPI"});
  return true;
}

// A warning during this wait has named all of them.
bool AbsenceReport::is_known(const std::vector<int>& absent, const Wait& wait) const {
  const TimePoint begun = now() - wait.waited;
  if (absent.empty()) return wait.reported_at > begun;
  return std::all_of(absent.begin(), absent.end(), [&](int rank) {
    const auto warned = warned_of_.find(rank);
    return warned != warned_of_.end() && warned->second > begun;
  });
}

void AbsenceReport::report(wire::Meeting meeting, const Wait& wait) {
  const auto index = static_cast<std::size_t>(meeting);
  waits_[index].reported_at = now();
  waits_[index].reported = wait.waited;
  const std::string absent = describe_absent(job_);
  const std::string text =
      "ranks have waited over " + format_duration(wait.waited) + " to meet the others (" +
      kCalls[index] + "); " +
      (absent.empty() ? "all wait, at different meetings" : "not there: " + absent);
  if (wait.is_too_long) {
    job_.request_stop({StopReason::Kind::kStalled, 0,
                       text + ": the job ends (HVRUN_STALL_SHUTDOWN_SECONDS)",
                       absence_advice(job_, meeting, true)});
  } else {
    warn(text, meeting, wait);
  }
}

void AbsenceReport::warn(const std::string& text, wire::Meeting meeting, const Wait& wait) {
  const std::vector<int> absent = absent_ranks(job_);
  if (is_known(absent, wait)) return;
  for (const int rank : absent) warned_of_[rank] = now();
  console_.say("warning: " + text + "\n  try: " + absence_advice(job_, meeting, false) +
               "; HVRUN_STALL_SECONDS sets when this is told");
  inquiry_.add_stall(
      {"where those stand that are not there, and one that waits:", absent, now() - wait.waited});
}

}  // namespace hv::launcher
