// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/absence_report.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

#include "launcher/output/gather.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr auto kAnswerTime = std::chrono::seconds(5);
constexpr std::size_t kNamedHosts = 8;

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

std::string absence_advice(const Job& job) {
  for (const HostState& host : job.hosts) {
    if (!host.is_there() || host.absent.empty() || host.absent[0] >= job.ranks.size()) continue;
    const std::string pid = std::to_string(job.ranks[host.absent[0]].pid);
    return "look what rank " + std::to_string(host.absent[0]) + " does, on host " +
           host.target.name + ": py-spy dump --pid " + pid + ", or gdb -p " + pid;
  }
  return "";
}

void AbsenceReport::fence_stalled(const wire::FenceStalled& stall) {
  is_too_long_ = is_too_long_ || stall.is_too_long;
  waited_s_ = stall.waited_s;
  if (is_asking_ || (!stall.is_too_long && now() - told_ < job_.stall_limit / 2)) return;
  is_asking_ = true;
  boost::asio::co_spawn(job_.executor, ask(), boost::asio::detached);
}

boost::asio::awaitable<void> AbsenceReport::ask() {
  co_await job_.query(now() + kAnswerTime);
  is_asking_ = false;
  const std::string absent = absence_words(job_);
  const bool is_too_long = std::exchange(is_too_long_, false);
  if (absent.empty()) co_return;
  told_ = now();
  const auto waited =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(waited_s_));
  const std::string words = "ranks have waited over " + seconds_text(waited) +
                            " to meet the others (hvrun_init); not there: " + absent;
  if (is_too_long) {
    job_.request_stop({StopRequest::Kind::kStalled, 0,
                       words + ": the job ends (HVRUN_STALL_SHUTDOWN_SECONDS)",
                       absence_advice(job_)});
  } else {
    warn_("warning: " + words + "\n  try: " + absence_advice(job_) +
          "; HVRUN_STALL_SECONDS sets when this is told");
  }
}

}  // namespace hv::launcher
