// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/stacks/stack_report.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "launcher/record/job_record.h"
#include "launcher/supervise/stacks/stack_frames.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

using Frames = std::vector<std::string>;

constexpr std::size_t kMostHosts = 8;
constexpr std::size_t kMostOthers = 4;  // threads that are told beside the main one
constexpr std::size_t kMostNative = 3;  // different native ends of one Python stack
constexpr std::size_t kInnermost = 3;   // frames of a thread that is told in one line

// What makes two processes stand at the same place.
struct StackPosition {
  bool is_other_process = false;  // than its rank's first
  Frames python;
  Frames native;  // where there is no Python
  std::string name, state, problem;
  auto key() const { return std::tie(is_other_process, python, native, name, state, problem); }
  bool operator<(const StackPosition& other) const { return key() < other.key(); }
};

struct StackGroup {
  std::set<int> ranks;
  std::set<std::string> hosts;
  std::set<std::uint32_t> pids;
  std::set<Frames> below;  // native ends of the Python stack
  std::size_t idle = 0;    // threads, of the one that has most
  std::set<Frames> others;
};

// A stack that repeats itself is told once, with how often.
Frames folded(const Frames& frames) {
  Frames lines;
  for (std::size_t i = 0; i < frames.size();) {
    std::size_t end = i + 1;
    while (end < frames.size() && frames[end] == frames[i]) ++end;
    lines.push_back(frames[i] + (end - i > 1 ? " (" + std::to_string(end - i) + " times)" : ""));
    i = end;
  }
  return lines;
}

// Innermost last; of a long one the outermost are left out.
std::string frame_lines(const Frames& innermost_first) {
  Frames lines = folded(innermost_first);
  const std::size_t more = lines.size() > kMostFramesTold ? lines.size() - kMostFramesTold : 0;
  lines.resize(lines.size() - more);
  std::string text;
  if (more > 0) text += std::string("\n") + kStackIndent + "... " + std::to_string(more) + " more";
  for (auto line = lines.rbegin(); line != lines.rend(); ++line)
    text += "\n" + (kStackIndent + *line);
  return text;
}

std::string in_one_line(Frames frames, std::size_t most) {
  frames = folded(frames);
  const bool is_cut = frames.size() > most;
  if (is_cut) frames.resize(most);
  return join(frames, " < ") + (is_cut ? " < ..." : "");
}

void note_others(const std::vector<ThreadStack>& threads, StackGroup* group) {
  std::size_t idle = 0;
  for (const ThreadStack& thread : threads) {
    if (thread.is_main) continue;
    idle += thread.is_idle;
    if (!thread.is_idle) group->others.insert(thread.frames);
  }
  group->idle = std::max(group->idle, idle);
}

// The engine of hvrun's runtime and others' pools are native threads of a Python program: they are
// as many as there are cores, and tell nothing.
void add(const StackOfRank& stack, bool is_other_process,
         std::map<StackPosition, StackGroup>* groups) {
  const wire::RankStacks& told = stack.told;
  const std::vector<ThreadStack> python = python_stacks(told.python);
  const std::vector<ThreadStack> native = native_stacks(told.native);
  const ThreadStack* const main = main_of(python);
  const ThreadStack* const native_main = main_of(native);
  StackPosition place{
      is_other_process, {}, {}, "", printable(told.state), printable(told.problem, 1000)};
  if (main) place.python = main->frames;
  if (!main && native_main) place.native = native_main->frames;
  if (place.python.empty() && place.native.empty()) place.name = printable(told.name, 40);
  StackGroup& group = (*groups)[place];
  group.ranks.insert(static_cast<int>(told.rank));
  group.hosts.insert(stack.host);
  group.pids.insert(told.pid);
  note_others(main ? python : native, &group);
  if (main && native_main) {
    if (Frames below = below_python(native_main->frames); !below.empty())
      group.below.insert(std::move(below));
  }
}

std::string who(const StackPosition& place, const StackGroup& group) {
  const std::vector<int> ranks(group.ranks.begin(), group.ranks.end());
  std::vector<std::string> hosts(group.hosts.begin(), group.hosts.end());
  const std::size_t more = hosts.size() > kMostHosts ? hosts.size() - kMostHosts : 0;
  hosts.resize(hosts.size() - more);
  std::string words;
  if (place.is_other_process) {
    words = group.pids.size() == 1
                ? "another process (pid " + std::to_string(*group.pids.begin()) + ")"
                : std::to_string(group.pids.size()) + " other processes";
    words += " of ";
  }
  words += ranges_of("rank", ranks) + " on " + word_for(group.hosts.size(), "host") + " " +
           join(hosts, ", ") + (more > 0 ? " and " + std::to_string(more) + " more" : "");
  if (!place.name.empty())
    words += " (" + place.name +
             (group.pids.size() == 1 && !place.is_other_process
                  ? ", pid " + std::to_string(*group.pids.begin())
                  : "") +
             ")";
  return words;
}

std::string other_threads(const StackGroup& group) {
  const std::string line = std::string("\n") + kStackIndent;
  std::string text;
  std::size_t told = 0;
  for (const Frames& frames : group.others) {
    if (++told > kMostOthers) break;
    text += line + "another thread, innermost first: " + in_one_line(frames, kInnermost);
  }
  const std::size_t more = group.others.size() - std::min(group.others.size(), kMostOthers);
  if (more > 0) text += line + "and " + std::to_string(more) + " more of other threads' stacks";
  if (group.idle > 0) text += line + "other threads: " + std::to_string(group.idle) + " idle";
  return text;
}

bool is_of_python(const Frames& frames) {
  return std::any_of(frames.begin(), frames.end(), [](const std::string& frame) {
    return frame.find("_PyEval_EvalFrameDefault") != std::string::npos;
  });
}

std::string describe_group(const StackPosition& place, const StackGroup& group) {
  const bool are_many = place.is_other_process ? group.pids.size() > 1 : group.ranks.size() > 1;
  std::string text = who(place, group);
  if (!place.state.empty()) text += (are_many ? ": each " : " ") + place.state;
  const Frames& frames = place.python.empty() ? place.native : place.python;
  if (!frames.empty()) {
    text += place.state.empty() ? "" : " and";
    text += are_many ? " stand in" : " stands in";
    text += std::string(" (") + (place.python.empty() ? "C" : "Python") + ", innermost last):";
    text += frame_lines(frames);
    std::size_t told = 0;
    for (const Frames& below : group.below) {
      if (++told > kMostNative) break;
      text += std::string("\n") + kStackIndent + "C, innermost first: " + in_one_line(below, 8);
    }
    text += other_threads(group);
    if (place.python.empty() && is_of_python(place.native))
      text += std::string("\n") + kStackIndent +
              "Python's own lines are told of programs that import hvrun";
    if (!place.problem.empty()) text += std::string("\n") + kStackIndent + place.problem;
  } else {
    text += ": " + (place.problem.empty() ? "nothing is known of its stack" : place.problem);
  }
  return text;
}

}  // namespace

std::vector<std::string> stack_groups(const std::vector<StackOfRank>& stacks) {
  std::map<StackPosition, StackGroup> groups;
  std::set<std::uint32_t> seen;
  for (const StackOfRank& stack : stacks) add(stack, !seen.insert(stack.told.rank).second, &groups);
  std::vector<const std::pair<const StackPosition, StackGroup>*> order;
  for (const auto& group : groups) order.push_back(&group);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->first.is_other_process, *a->second.ranks.begin()) <
           std::pair(b->first.is_other_process, *b->second.ranks.begin());
  });
  std::vector<std::string> texts;
  for (const auto* group : order) {
    if (texts.size() == kMostGroupsTold) {
      texts.push_back("... " + std::to_string(order.size() - texts.size()) + " more stacks");
      break;
    }
    texts.push_back(describe_group(group->first, group->second));
  }
  return texts;
}

}  // namespace hv::launcher
