// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/go_between.h"

#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <vector>

#include "src/base/clock.h"

namespace hv::launcher {
namespace {

constexpr auto kTermGrace = std::chrono::milliseconds(300);  // from SIGTERM to SIGKILL
constexpr auto kTimeToDie = std::chrono::milliseconds(200);
constexpr int kPassMilliseconds = 5;

struct GoBetween {
  pid_t leader = -1;
  bool is_dismissed = false;
};

std::vector<GoBetween>& all() {
  static std::vector<GoBetween> list;
  return list;
}

bool has_ended(const GoBetween& one) { return look_at_go_between(one.leader).has_value(); }

// The leader has ended and is not reaped: the group's number is still its own.
void bury(const GoBetween& one) {
  ::kill(-one.leader, SIGKILL);
  ::waitpid(one.leader, nullptr, WNOHANG);
}

void bury_ended() {
  const auto first = std::partition(all().begin(), all().end(), [](const GoBetween& one) {
    return !one.is_dismissed || !has_ended(one);
  });
  std::for_each(first, all().end(), bury);
  all().erase(first, all().end());
}

void bury_until(TimePoint deadline) {
  for (bury_ended(); !all().empty() && now() < deadline; bury_ended())
    ::poll(nullptr, 0, kPassMilliseconds);
}

}  // namespace

void list_go_between(pid_t leader) {
  bury_ended();
  all().push_back({leader, false});
}

std::optional<ExitStatus> look_at_go_between(pid_t leader) {
  siginfo_t info{};
  int result = 0;
  do {
    result = ::waitid(P_PID, static_cast<id_t>(leader), &info, WEXITED | WNOHANG | WNOWAIT);
  } while (result != 0 && errno == EINTR);
  if (result != 0 || info.si_pid != leader) return std::nullopt;
  const bool by_signal = info.si_code != CLD_EXITED;
  return ExitStatus{by_signal, info.si_status, info.si_code == CLD_DUMPED};
}

void dismiss_go_between(pid_t leader) {
  const auto found = std::find_if(all().begin(), all().end(),
                                  [leader](const GoBetween& one) { return one.leader == leader; });
  if (found == all().end() || found->is_dismissed) return;
  found->is_dismissed = true;
  ::kill(-leader, SIGTERM);
}

void end_go_betweens() {
  const TimePoint begun = now();
  for (GoBetween& one : all()) {
    if (!one.is_dismissed) ::kill(-one.leader, SIGTERM);
    one.is_dismissed = true;
  }
  bury_until(begun + kTermGrace);
  for (const GoBetween& one : all()) ::kill(-one.leader, SIGKILL);
  bury_until(begun + kTermGrace + kTimeToDie);
}

}  // namespace hv::launcher
