// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/absence_report.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

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

void AbsenceReport::fence_stalled() {
  if (is_asking_ || now() - told_ < job_.stall_limit / 2) return;
  is_asking_ = true;
  boost::asio::co_spawn(job_.executor, ask(), boost::asio::detached);
}

boost::asio::awaitable<void> AbsenceReport::ask() {
  co_await job_.query(now() + kAnswerTime);
  is_asking_ = false;
  const std::string absent = absence_words(job_);
  if (absent.empty()) co_return;
  told_ = now();
  warn_("warning: ranks have waited over " + seconds_text(job_.stall_limit) +
        " to meet the others (hvrun_init); not there: " + absent +
        "\n  try: look what those ranks do; HVRUN_STALL_SECONDS sets when this is told");
}

}  // namespace hv::launcher
