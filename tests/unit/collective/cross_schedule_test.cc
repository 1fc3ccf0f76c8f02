// Schedules between hosts, carried out on words instead of numbers: who is folded with whom, at
// every place of a share.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/cross/cross_schedule.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace hv::runtime {
namespace {

constexpr std::size_t kLine = 64;  // cuts are made at cache lines

struct Named {
  const char* name;
  MakeSchedule make;
};
const std::vector<Named> kSchedules = {{"ring", ring_schedule},
                                       {"halving", halving_schedule},
                                       {"doubling", doubling_schedule},
                                       {"tree", tree_schedule}};

// A line of the share: how it was folded, "((0+2)+(1+3))!", with "!" where it was finished.
using Lines = std::vector<std::string>;

std::string folded(std::string a, std::string b) {
  if (b < a) std::swap(a, b);  // addition commutes, in bits too
  return "(" + a + "+" + b + ")";
}

struct Host {
  CrossSchedule schedule;
  Lines lines;
  std::size_t step = 0;
  bool has_sent = false;
  std::int64_t sent_bytes = 0;
};

struct Outcome {
  std::vector<Lines> lines;  // by host
  std::vector<std::int64_t> sent_bytes;
  std::size_t most_steps = 0;
  int messages = 0;
};

// Steps of all hosts in any order: a step is over when what it sends has left and what it receives
// has come.
Outcome carry_out(MakeSchedule make, int hosts, std::size_t bytes) {
  const std::size_t line_count = (bytes + kLine - 1) / kLine;
  std::vector<Host> all(static_cast<std::size_t>(hosts));
  for (int host = 0; host < hosts; ++host)
    all[static_cast<std::size_t>(host)] = {make(hosts, host, bytes),
                                           Lines(line_count, std::to_string(host))};
  std::map<std::pair<int, int>, std::deque<Lines>> channels;
  Outcome outcome;
  bool moved = true;
  while (std::exchange(moved, false)) {
    for (int host = 0; host < hosts; ++host) {
      Host& self = all[static_cast<std::size_t>(host)];
      if (self.step == self.schedule.size()) continue;
      const CrossStep& now = self.schedule[self.step];
      const auto first = [](const Range& range) { return range.begin / kLine; };
      const auto past = [](const Range& range) {
        return (range.begin + range.size + kLine - 1) / kLine;
      };
      if (now.to >= 0 && !self.has_sent) {
        Lines message;
        for (std::size_t i = first(now.out); now.out.size > 0 && i < past(now.out); ++i)
          message.push_back(self.lines[i]);
        channels[{host, now.to}].push_back(message);
        self.sent_bytes += static_cast<std::int64_t>(now.out.size);
        ++outcome.messages;
        self.has_sent = moved = true;
      }
      if (now.from >= 0) {
        auto& arriving = channels[{now.from, host}];
        if (arriving.empty()) continue;
        const std::size_t count = now.in.size == 0 ? 0 : past(now.in) - first(now.in);
        REQUIRE(arriving.front().size() == count);
        for (std::size_t i = 0; i < count; ++i) {
          std::string& mine = self.lines[first(now.in) + i];
          const std::string& theirs = arriving.front()[i];
          if (now.arrival == CrossStep::Arrival::kCopy) {
            mine = theirs;
          } else {
            mine = folded(mine, theirs);
            if (now.arrival == CrossStep::Arrival::kFinish) mine += "!";
          }
        }
        arriving.pop_front();
      }
      self.has_sent = false;
      ++self.step;
      moved = true;
    }
  }
  for (Host& host : all) {
    REQUIRE(host.step == host.schedule.size());
    outcome.most_steps = std::max(outcome.most_steps, host.schedule.size());
    outcome.lines.push_back(host.lines);
    outcome.sent_bytes.push_back(host.sent_bytes);
  }
  for (const auto& [ends, left] : channels) CHECK(left.empty());
  return outcome;
}

// Each host's number once, finished once, as the last thing that happened.
bool is_whole(const std::string& line, int hosts) {
  std::multiset<int> seen;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (!std::isdigit(line[i])) continue;
    std::size_t length = 0;
    seen.insert(std::stoi(line.substr(i), &length));
    i += length - 1;
  }
  if (seen.size() != static_cast<std::size_t>(hosts)) return false;
  for (int host = 0; host < hosts; ++host)
    if (seen.count(host) != 1) return false;
  return std::count(line.begin(), line.end(), '!') == 1 && line.back() == '!';
}

}  // namespace

TEST_CASE("every schedule folds every host once at every place, finishes it once, and tells all") {
  for (const Named& each : kSchedules)
    for (int hosts = 2; hosts <= 17; ++hosts)
      for (const std::size_t bytes : {0, 1, 64, 1000, 64 * 40}) {
        CAPTURE(std::string(each.name));
        CAPTURE(hosts);
        CAPTURE(bytes);
        const Outcome outcome = carry_out(each.make, hosts, bytes);
        for (const Lines& lines : outcome.lines) {
          CHECK(lines == outcome.lines.front());
          for (const std::string& line : lines) CHECK_MESSAGE(is_whole(line, hosts), line);
        }
      }
}

TEST_CASE("halving, doubling and the tree fold in one order everywhere, the ring by place") {
  for (int hosts = 2; hosts <= 17; ++hosts) {
    CAPTURE(hosts);
    const std::size_t bytes = 64 * 40;
    const std::string order = carry_out(tree_schedule, hosts, 64).lines[0][0];
    for (const MakeSchedule make : {halving_schedule, doubling_schedule, tree_schedule}) {
      const Outcome tree = carry_out(make, hosts, bytes);
      for (const std::string& line : tree.lines[0]) CHECK(line == order);
    }
    const Outcome ring = carry_out(ring_schedule, hosts, 64 * static_cast<std::size_t>(hosts));
    const std::set<std::string> orders(ring.lines[0].begin(), ring.lines[0].end());
    CHECK(orders.size() == (hosts == 2 ? 1 : static_cast<std::size_t>(hosts)));
  }
}

// The formulas of docs/algorithms.md.
TEST_CASE("steps, bytes and messages are those of the books") {
  for (const int hosts : {2, 4, 8, 16}) {
    CAPTURE(hosts);
    const std::int64_t bytes = 64 * 64;
    const auto log = static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(hosts)) - 1);
    const std::int64_t once_round = 2 * (hosts - 1) * bytes / hosts;
    const Outcome ring = carry_out(ring_schedule, hosts, bytes);
    CHECK(ring.most_steps == 2 * (static_cast<std::size_t>(hosts) - 1));
    for (const std::int64_t sent : ring.sent_bytes) CHECK(sent == once_round);
    const Outcome halving = carry_out(halving_schedule, hosts, bytes);
    CHECK(halving.most_steps == 2 * log);
    for (const std::int64_t sent : halving.sent_bytes) CHECK(sent == once_round);
    const Outcome doubling = carry_out(doubling_schedule, hosts, bytes);
    CHECK(doubling.most_steps == log);
    for (const std::int64_t sent : doubling.sent_bytes)
      CHECK(sent == static_cast<std::int64_t>(log) * bytes);
    const Outcome tree = carry_out(tree_schedule, hosts, bytes);
    CHECK(tree.most_steps == 2 * log);
    CHECK(tree.messages == 2 * (hosts - 1));
  }
  // The extra hosts come before and after.
  CHECK(carry_out(halving_schedule, 5, 6400).most_steps == 6);
  CHECK(carry_out(doubling_schedule, 5, 6400).most_steps == 4);
}

TEST_CASE("a schedule has the same steps and peers whatever the share's size") {
  for (const Named& each : kSchedules)
    for (const int hosts : {2, 3, 6, 8})
      for (int me = 0; me < hosts; ++me) {
        const CrossSchedule empty = each.make(hosts, me, 0), large = each.make(hosts, me, 100000);
        REQUIRE(empty.size() == large.size());
        for (std::size_t i = 0; i < empty.size(); ++i) {
          CHECK(empty[i].to == large[i].to);
          CHECK(empty[i].from == large[i].from);
          CHECK(empty[i].arrival == large[i].arrival);
        }
      }
}

}  // namespace hv::runtime
