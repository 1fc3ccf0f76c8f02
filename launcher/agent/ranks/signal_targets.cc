// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ranks/signal_targets.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <set>
#include <utility>

#include "launcher/facts/read_file.h"
#include "src/base/text.h"
#include "src/process/signals.h"

namespace hv::launcher {
namespace {

using Access = SignalTraits::Access;
using Children = std::multimap<pid_t, pid_t>;

constexpr pid_t kInit = 1;

bool is_gone(pid_t pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; }

bool is_of_another_user(pid_t pid) { return ::kill(pid, 0) != 0 && errno == EPERM; }

// With hidepid=2 /proc lists a process of another user only as a child of its parent.
std::optional<pid_t> hidden_child_of(const std::string& directory) {
  const bool are_others_hidden = is_of_another_user(kInit) && !read_process(kInit);
  if (!are_others_hidden) return std::nullopt;
  for (const std::string& thread : names_in(directory + "/task")) {
    const auto children = read_file(directory + "/task/" + thread + "/children");
    for (const std::string& word : split(children.value_or(""), ' ')) {
      const auto child = parse_integer(word);
      if (child && is_of_another_user(static_cast<pid_t>(*child)) &&
          !read_process(static_cast<pid_t>(*child)))
        return static_cast<pid_t>(*child);
    }
  }
  return std::nullopt;
}

// The descendants of a rank without handler that get its signal; none: it has no such descendants.
// nullopt: *denied may not be read or signalled.
std::optional<std::vector<pid_t>> nearest_handlers(
    pid_t rank, const SignalTraits& traits_of_rank, const Children& children,
    const std::function<SignalTraits(pid_t)>& traits_of, pid_t* denied) {
  std::vector<pid_t> found;
  std::vector<std::pair<pid_t, SignalTraits>> open{{rank, traits_of_rank}};
  std::set<pid_t> seen{rank};  // a listing is no snapshot: a reused pid could close a circle
  while (!open.empty()) {
    const auto [parent, parents] = std::move(open.back());
    open.pop_back();
    const auto [first, last] = children.equal_range(parent);
    if (parents.hidden_child || (first != last && parents.executable.empty())) {
      *denied = parents.hidden_child.value_or(parent);
      return std::nullopt;
    }
    for (auto child = first; child != last; ++child) {
      const pid_t pid = child->second;
      if (!seen.insert(pid).second) continue;
      SignalTraits traits = traits_of(pid);
      if (traits.access == Access::kGone) continue;
      if (traits.access != Access::kFull || traits.executable.empty()) {
        *denied = pid;
        return std::nullopt;
      }
      if (traits.catches && traits.executable != parents.executable)
        found.push_back(pid);
      else
        open.emplace_back(pid, std::move(traits));
    }
  }
  return found;
}

SignalTargets targets_of(pid_t rank, const Children& children,
                         const std::function<SignalTraits(pid_t)>& traits_of) {
  SignalTargets targets;
  targets.rank = rank;
  const SignalTraits traits = traits_of(rank);
  if (traits.access == Access::kUnreadable || traits.access == Access::kUnsignallable)
    targets.denied = rank;
  if (traits.access == Access::kUnsignallable) return targets;
  if (traits.catches)
    targets.use = wire::SigtermUse::kHandled;
  else if (traits.ignores)
    targets.use = wire::SigtermUse::kIgnored;
  if (traits.access == Access::kFull && !traits.catches) {
    pid_t denied = 0;
    if (auto found = nearest_handlers(rank, traits, children, traits_of, &denied))
      targets.pids = std::move(*found);
    else
      targets.denied = denied;
  }
  if (targets.pids.empty()) targets.pids.push_back(rank);
  return targets;
}

}  // namespace

SignalTraits read_signal_traits(pid_t pid, int signal) {
  if (is_gone(pid)) return {Access::kGone};
  if (is_of_another_user(pid)) return {Access::kUnsignallable};
  const std::string directory = "/proc/" + std::to_string(pid);
  const auto status = read_file(directory + "/status");
  if (!status) return {is_gone(pid) ? Access::kGone : Access::kUnreadable};
  SignalTraits traits;
  traits.catches =
      holds_signal(*status, "SigCgt:", signal) || holds_signal(*status, "SigBlk:", signal);
  traits.ignores = holds_signal(*status, "SigIgn:", signal);
  struct stat executable {};
  if (::stat((directory + "/exe").c_str(), &executable) == 0)
    traits.executable = std::to_string(executable.st_dev) + ":" + std::to_string(executable.st_ino);
  else if (errno == ENOENT || errno == ESRCH)
    return {Access::kGone};  // a zombie
  if (!traits.catches) traits.hidden_child = hidden_child_of(directory);
  return traits;
}

std::vector<SignalTargets> choose_signal_targets(
    const std::vector<ProcessEntry>& all, const std::vector<pid_t>& ranks,
    const std::function<SignalTraits(pid_t)>& traits_of) {
  Children children;
  for (const ProcessEntry& process : all)
    if (!process.is_zombie()) children.emplace(process.parent, process.pid);
  std::vector<SignalTargets> targets;
  for (const pid_t rank : ranks) targets.push_back(targets_of(rank, children, traits_of));
  return targets;
}

std::vector<SignalTargets> find_signal_targets(const std::vector<ProcessEntry>& all,
                                               const std::vector<pid_t>& ranks, int signal) {
  return choose_signal_targets(all, ranks,
                               [signal](pid_t pid) { return read_signal_traits(pid, signal); });
}

void send_signal(const std::vector<SignalTargets>& targets, int signal, HvrunLink& link) {
  for (const SignalTargets& each : targets) {
    for (const pid_t pid : each.pids) ::kill(pid, signal);
    if (!each.denied) continue;
    const std::string name = "process " + std::to_string(*each.denied);
    link.send(wire::Note{
        each.pids.empty()
            ? name + ", a rank's own, belongs to another user and did not get " +
                  signal_text(signal)
            : name + " may not be read or signalled, so its rank's own process alone got " +
                  signal_text(signal),
        true});
  }
}

}  // namespace hv::launcher
