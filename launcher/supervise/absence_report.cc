// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/absence_report.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

#include "launcher/output/gather.h"
#include "src/base/bounded_seconds.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr auto kAnswerTime = std::chrono::seconds(5);
constexpr std::size_t kNamedHosts = 8;
// Of seconds on their way; who waits less long does not wait.
constexpr Duration kRounding = std::chrono::microseconds(1);

}  // namespace

std::string absence_words(const Job& job) {
  std::vector<std::string> groups;
  for (const HostState& host : job.hosts) {
    if (!host.is_there() || host.absent.empty()) continue;
    groups.push_back(rank_words({host.absent.begin(), host.absent.end()}) + " on host " +
                     host.target.name);
  }
  const std::size_t more = groups.size() > kNamedHosts ? groups.size() - kNamedHosts : 0;
  groups.resize(groups.size() - more);
  return join(groups, ", ") + (more ? " and those of " + std::to_string(more) + " more hosts" : "");
}

std::string absence_advice(const Job& job, bool is_by_mpi) {
  for (const HostState& host : job.hosts) {
    if (!host.is_there() || host.absent.empty() || host.absent[0] >= job.ranks.size()) continue;
    const std::uint32_t pid = job.ranks[host.absent[0]].pid;
    const std::string at = std::to_string(pid);
    return "look what rank " + std::to_string(host.absent[0]) + " does, on host " +
           host.target.name + (pid == 0 ? "" : ": py-spy dump --pid " + at + ", or gdb -p " + at);
  }
  return std::string("let every rank call ") +
         (is_by_mpi ? "MPI_Init and MPI_Finalize, once"
                    : "hvrun_init and hvrun_shutdown as often") +
         " as the others";
}

void AbsenceReport::fence_stalled(const wire::FenceStalled& stall) {
  const Duration waited = bounded_seconds(stall.waited_s);
  // Waits that overlap are one, of which every host tells as its own ranks began.
  const bool is_told = now() - waited < told_at_ && waited <= told_;
  if (is_told && !stall.is_too_long) return;
  is_too_long_ = is_too_long_ || stall.is_too_long;
  is_by_mpi_ = stall.is_by_mpi;
  waited_ = std::max(waited_, waited);
  if (std::exchange(is_asking_, true)) return;
  boost::asio::co_spawn(job_.executor, ask(), boost::asio::detached);
}

// Something else ends the job.
bool AbsenceReport::is_past_caring() const {
  return job_.stop || job_.ending || (job_.policy && job_.policy->failed());
}

// The ranks may have met since, and even wait anew.
bool AbsenceReport::still_waits() const {
  const Duration limit = is_too_long_ ? job_.stall_end : job_.stall_limit;
  return !job_.all_hosts([limit](const HostState& host) {
    return !host.is_there() || host.waited < std::max(limit - kRounding, kRounding);
  });
}

// Answers of one moment: all hosts', and nobody has met meanwhile.
boost::asio::awaitable<void> AbsenceReport::hear_all() {
  for (;;) {
    const std::size_t passed = job_.fences ? job_.fences->passed() : 0;
    const bool have_answered = co_await job_.query(now() + kAnswerTime);
    if (is_past_caring()) co_return;
    if (have_answered && (!job_.fences || job_.fences->passed() == passed)) co_return;
  }
}

boost::asio::awaitable<void> AbsenceReport::ask() {
  if (!is_past_caring()) co_await hear_all();
  if (!is_past_caring() && still_waits()) tell();
  is_asking_ = is_too_long_ = false;
  waited_ = Duration::zero();
}

void AbsenceReport::tell() {
  const std::string absent = absence_words(job_);
  if (absent.empty() && !is_too_long_) return;
  told_at_ = now();
  told_ = waited_;
  const std::string words =
      "ranks have waited over " + seconds_text(waited_) + " to meet the others (" +
      (is_by_mpi_ ? "MPI_Init, MPI_Finalize" : "hvrun_init") + "); " +
      (absent.empty() ? "all wait, at different meetings" : "not there: " + absent);
  if (is_too_long_) {
    job_.request_stop({StopRequest::Kind::kStalled, 0,
                       words + ": the job ends (HVRUN_STALL_SHUTDOWN_SECONDS)",
                       absence_advice(job_, is_by_mpi_)});
  } else {
    warn_("warning: " + words + "\n  try: " + absence_advice(job_, is_by_mpi_) +
          "; HVRUN_STALL_SECONDS sets when this is told");
  }
}

}  // namespace hv::launcher
