// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/stacks/stack_report.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "launcher/allocation/host_names.h"
#include "launcher/record/job_record.h"
#include "launcher/supervise/stacks/stack_frames.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

using Frames = std::vector<std::string>;

constexpr std::size_t kMostOthers = 4;  // threads besides the main one
constexpr std::size_t kMostNative = 3;  // different native ends of one Python stack
constexpr std::size_t kInnermost = 3;   // frames of a thread that gets one line

// Processes with equal keys stand at the same position.
struct StackPosition {
  bool is_other_process = false;  // not its rank's first
  Frames python;
  Frames native;  // of a process without Python
  std::string name, state, problem;
  auto key() const { return std::tie(is_other_process, python, native, name, state, problem); }
  bool operator<(const StackPosition& other) const { return key() < other.key(); }
};

struct StackGroup {
  std::set<int> ranks;
  std::set<std::string> hosts;
  std::set<std::uint32_t> pids;
  std::set<Frames> below;  // native ends of the Python stack
  std::size_t idle = 0;    // idle threads of the process that has most
  std::set<Frames> others;
};

// A frame that repeats becomes one line with the number of times.
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

// Innermost last. The outermost frames of a long stack are left out.
std::string frame_lines(const Frames& innermost_first) {
  Frames lines = folded(innermost_first);
  const std::size_t more = lines.size() > kMostFrames ? lines.size() - kMostFrames : 0;
  lines.resize(lines.size() - more);
  std::string text;
  if (more > 0) text += std::string("\n") + kStackIndent + "... " + std::to_string(more) + " more";
  for (auto line = lines.rbegin(); line != lines.rend(); ++line)
    text += "\n" + (kStackIndent + *line);
  return text;
}

std::string join_frames(Frames frames, std::size_t most) {
  frames = folded(frames);
  const bool is_cut = frames.size() > most;
  if (is_cut) frames.resize(most);
  return join(frames, " < ") + (is_cut ? " < ..." : "");
}

void add_other_threads(const std::vector<ThreadStack>& threads, StackGroup* group) {
  std::size_t idle = 0;
  for (const ThreadStack& thread : threads) {
    if (thread.is_main) continue;
    idle += thread.is_idle;
    if (!thread.is_idle) group->others.insert(thread.frames);
  }
  group->idle = std::max(group->idle, idle);
}

// Python's multiprocessing runs such a process for itself, beside a program's workers.
bool is_of_multiprocessing(const Frames& innermost_first) {
  const std::size_t most = std::min<std::size_t>(innermost_first.size(), 2);
  return std::any_of(innermost_first.begin(), innermost_first.begin() + static_cast<long>(most),
                     [](const std::string& frame) {
                       const bool is_main = frame.ends_with(" in main");
                       const auto has = [&frame](const char* file) {
                         return frame.find(file) != std::string::npos;
                       };
                       return is_main && (has("/multiprocessing/resource_tracker.py:") ||
                                          has("/multiprocessing/forkserver.py:"));
                     });
}

// The native threads of a Python program (hvrun's engine, thread pools) are left out: there are as
// many as cores, and they explain nothing.
void add_stack(const StackOfRank& stack, bool is_other_process,
               std::map<StackPosition, StackGroup>* groups) {
  const wire::RankStacks& stacks = stack.stacks;
  const std::vector<ThreadStack> python = python_stacks(stacks.python);
  const std::vector<ThreadStack> native = native_stacks(stacks.native);
  const ThreadStack* const main = main_of(python);
  if (is_other_process && main && is_of_multiprocessing(main->frames)) return;
  const ThreadStack* const native_main = main_of(native);
  StackPosition position{
      is_other_process, {}, {}, "", printable(stacks.state), printable(stacks.problem, 1000)};
  if (main) position.python = main->frames;
  if (!main && native_main) position.native = native_main->frames;
  if (position.python.empty() && position.native.empty())
    position.name = printable(stacks.name, 40);
  StackGroup& group = (*groups)[position];
  group.ranks.insert(static_cast<int>(stacks.rank));
  group.hosts.insert(stack.host);
  group.pids.insert(stacks.pid);
  add_other_threads(main ? python : native, &group);
  if (main && native_main) {
    if (Frames below = below_python(native_main->frames); !below.empty())
      group.below.insert(std::move(below));
  }
}

std::string describe_ranks(const StackPosition& position, const StackGroup& group) {
  const std::vector<int> ranks(group.ranks.begin(), group.ranks.end());
  const std::vector<std::string> hosts(group.hosts.begin(), group.hosts.end());
  std::string text;
  if (position.is_other_process) {
    text = group.pids.size() == 1
               ? "another process (pid " + std::to_string(*group.pids.begin()) + ")"
               : std::to_string(group.pids.size()) + " other processes";
    text += " of ";
  }
  text += ranges_of("rank", ranks) + " on " + named_hosts_text(hosts);
  if (!position.name.empty())
    text += " (" + position.name +
            (group.pids.size() == 1 && !position.is_other_process
                 ? ", pid " + std::to_string(*group.pids.begin())
                 : "") +
            ")";
  return text;
}

std::string other_threads(const StackGroup& group) {
  const std::string line = std::string("\n") + kStackIndent;
  std::string text;
  std::size_t shown = 0;
  for (const Frames& frames : group.others) {
    if (++shown > kMostOthers) break;
    text += line + "another thread, innermost first: " + join_frames(frames, kInnermost);
  }
  const std::size_t more = group.others.size() - std::min(group.others.size(), kMostOthers);
  if (more > 0) text += line + "and " + std::to_string(more) + " more of other threads' stacks";
  if (group.idle > 0) text += line + "other threads: " + std::to_string(group.idle) + " idle";
  return text;
}

bool runs_python(const Frames& frames) {
  return std::any_of(frames.begin(), frames.end(), [](const std::string& frame) {
    return frame.find("_PyEval_EvalFrameDefault") != std::string::npos;
  });
}

std::string describe_group(const StackPosition& position, const StackGroup& group) {
  const bool are_many = position.is_other_process ? group.pids.size() > 1 : group.ranks.size() > 1;
  std::string text = describe_ranks(position, group);
  if (!position.state.empty()) text += (are_many ? ": each " : " ") + position.state;
  const Frames& frames = position.python.empty() ? position.native : position.python;
  if (!frames.empty()) {
    text += position.state.empty() ? "" : " and";
    text += are_many ? " stand in" : " stands in";
    text += std::string(" (") + (position.python.empty() ? "C" : "Python") + ", innermost last):";
    text += frame_lines(frames);
    std::size_t shown = 0;
    for (const Frames& below : group.below) {
      if (++shown > kMostNative) break;
      text += std::string("\n") + kStackIndent + "C, innermost first: " + join_frames(below, 8);
    }
    text += other_threads(group);
    if (position.python.empty() && runs_python(position.native))
      text += std::string("\n") + kStackIndent +
              "Python's own lines need HVRUN_PYTHON_START=1, no -I, -E or -S, and Python 3.8";
    if (!position.problem.empty()) text += std::string("\n") + kStackIndent + position.problem;
  } else {
    text += ": " + (position.problem.empty() ? "nothing is known of its stack" : position.problem);
  }
  return text;
}

}  // namespace

std::vector<std::string> stack_groups(const std::vector<StackOfRank>& stacks) {
  std::map<StackPosition, StackGroup> groups;
  std::set<std::uint32_t> seen;
  for (const StackOfRank& stack : stacks)
    add_stack(stack, !seen.insert(stack.stacks.rank).second, &groups);
  std::vector<const std::pair<const StackPosition, StackGroup>*> order;
  for (const auto& group : groups) order.push_back(&group);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->first.is_other_process, *a->second.ranks.begin()) <
           std::pair(b->first.is_other_process, *b->second.ranks.begin());
  });
  std::vector<std::string> texts;
  for (const auto* group : order) {
    if (texts.size() == kMostGroups) {
      texts.push_back("... " + std::to_string(order.size() - texts.size()) + " more stacks");
      break;
    }
    texts.push_back(describe_group(group->first, group->second));
  }
  return texts;
}

}  // namespace hv::launcher
