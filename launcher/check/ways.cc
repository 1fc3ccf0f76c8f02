// How long and how wide are the ways between hosts? Measured from each host to the next one.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/check/ways.h"

#include <algorithm>
#include <cstdio>
#include <functional>

#include "launcher/check/probe_list.h"
#include "launcher/check/told.h"
#include "src/base/clock.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr double kMostRoundTrip_us = 20000;
// One below is slower than a gigabit; one that is slow only beside the others is told where it is
// below the other limit, too: on a fast network nothing else will be as fast as the fastest.
constexpr double kLeastBesideOthers_MBs = 300;
constexpr double kTimesSlower = 4;

std::string with_unit(double value, const char* unit) {
  char text[48];
  std::snprintf(text, sizeof text, value < 10 ? "%.1f %s" : "%.0f %s", value, unit);
  return text;
}

std::string way_between(const CheckInput& input, const PairFacts& pair) {
  return input.hosts[pair.from].name + " to " + input.hosts[pair.to].name;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// What did not arrive in time, and was sent again and again, is measured, too: packets are lost.
bool is_measured(const PairFacts& pair) {
  return pair.measure && (pair.measure->problem.empty() || loses_packets(*pair.measure));
}

std::vector<const PairFacts*> measured(const CheckInput& input) {
  std::vector<const PairFacts*> pairs;
  for (const PairFacts& pair : input.pairs)
    if (is_measured(pair)) pairs.push_back(&pair);
  return pairs;
}

double usual_speed(const std::vector<const PairFacts*>& pairs) {
  std::vector<double> speeds;
  for (const PairFacts* pair : pairs)
    if (pair->measure->megabytes_per_s > 0) speeds.push_back(pair->measure->megabytes_per_s);
  return median(speeds);
}

bool is_long(const wire::PairMeasure& measure) { return measure.round_trip_us > kMostRoundTrip_us; }
bool is_far_below(double speed, double usual) { return speed * kTimesSlower < usual; }
bool is_slow(const wire::PairMeasure& measure, double usual) {
  const double speed = measure.megabytes_per_s;
  return speed > 0 &&
         (speed < kSlowPath_MBs || (speed < kLeastBesideOthers_MBs && is_far_below(speed, usual)));
}

// Leaves out the usual speed unless this one is far below it: the median may come from slow paths.
std::string speed_text(double speed, double usual) {
  std::string text = with_unit(speed, "MB/s");
  if (is_far_below(speed, usual)) text += " (usual here: " + with_unit(usual, "MB/s") + ")";
  return text;
}

// One finding for all pairs of which `is_bad` holds, with a figure for each. Hosts that are in most
// of them come first: they are at fault rather than those beside them.
void add_for_pairs(const CheckInput& input, const std::vector<const PairFacts*>& pairs,
                   const char* verdict, const std::function<bool(const wire::PairMeasure&)>& is_bad,
                   const std::function<std::string(const wire::PairMeasure&)>& figure,
                   Judgement* judgement) {
  std::vector<std::string> facts;
  std::vector<std::pair<std::size_t, std::size_t>> counts;  // of ways, by host
  for (std::size_t host = 0; host < input.hosts.size(); ++host) counts.emplace_back(0, host);
  for (const PairFacts* pair : pairs) {
    if (!is_bad(*pair->measure)) continue;
    facts.push_back(way_between(input, *pair) + ": " + figure(*pair->measure));
    ++counts[pair->from].first;
    ++counts[pair->to].first;
  }
  if (facts.empty()) return;
  std::stable_sort(counts.begin(), counts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> hosts;
  for (const auto& [count, host] : counts)
    if (count > 0) hosts.push_back(input.hosts[host].name);
  const auto interfaces = interfaces_in_use(input);
  const auto interface = interfaces.find(counts.front().second);
  const Fill values{
      {"HOST", hosts.front()},  // the others need no fix
      {"INTERFACE", interface == interfaces.end() ? "eth0" : interface->second->name}};
  judgement->add(verdict, hosts, join(facts, ", "), values);
}

void judge_ways(const CheckInput& input, Judgement* judgement) {
  const std::vector<const PairFacts*> pairs = measured(input);
  add_for_pairs(
      input, pairs, "full-packets-lost", [](const auto& measure) { return measure.is_stuck; },
      [](const auto& measure) {
        return "small messages pass, segments of " + std::to_string(measure.segment_bytes) +
               " bytes do not";
      },
      judgement);
  add_for_pairs(
      input, pairs, "packets-lost", loses_packets,
      [](const auto& measure) {
        return with_unit(100 * measure.resent_share, "%") + " of the segments were sent again";
      },
      judgement);
  add_for_pairs(
      input, pairs, "long-way", is_long,
      [](const auto& measure) {
        return format_duration(Seconds(measure.round_trip_us / 1e6)) + " there and back";
      },
      judgement);
  const double usual = usual_speed(pairs);
  add_for_pairs(
      input, pairs, "slow-way", [usual](const auto& measure) { return is_slow(measure, usual); },
      [usual](const auto& measure) { return speed_text(measure.megabytes_per_s, usual); },
      judgement);
  for (const PairFacts& pair : input.pairs)
    if (pair.measure && !is_measured(pair))
      judgement->not_probed({input.hosts[pair.from].name, input.hosts[pair.to].name},
                            way_between(input, pair) + ": " + pair.measure->problem);
}

}  // namespace

bool loses_packets(const wire::PairMeasure& measure) {
  return measure.resent_share > kMostResentShare;
}

std::vector<std::size_t> doubtful_ways(const CheckInput& input) {
  const double usual = usual_speed(measured(input));
  std::vector<std::size_t> doubtful;
  for (std::size_t i = 0; i < input.pairs.size(); ++i) {
    const auto& measure = input.pairs[i].measure;
    if (is_measured(input.pairs[i]) && !measure->is_stuck &&
        (loses_packets(*measure) || is_long(*measure) || is_slow(*measure, usual)))
      doubtful.push_back(i);
  }
  return doubtful;
}

wire::PairMeasure better_measure(const wire::PairMeasure& first, const wire::PairMeasure& second) {
  if (!second.problem.empty() || second.is_stuck) return first;
  if (!first.problem.empty()) return second;
  wire::PairMeasure better = first;
  better.round_trip_us = std::min(first.round_trip_us, second.round_trip_us);
  better.megabytes_per_s = std::max(first.megabytes_per_s, second.megabytes_per_s);
  better.resent_share = std::min(first.resent_share, second.resent_share);
  return better;
}

const Probe kWaysProbe{
    "ways",
    "the way from each host to the next one in a circle, by one TCP connection: the time of small "
    "messages, the speed of many, packets sent again",
    {{"full-packets-lost", Severity::kHarms,
      "between two hosts small messages pass, and nothing that fills a packet for 2 s",
      "the ranks meet, and stand still with their first large tensor: a part of the way takes "
      "smaller packets than the hosts' interfaces send, and says nothing",
      "set the interfaces to what the whole way takes, as in: ssh $HOST sudo ip link set dev "
      "$INTERFACE mtu 1400"},
     {"packets-lost", Severity::kHarms,
      "more than 3 % of what each of three connections sent had to be sent again",
      "every tensor that crosses that way waits for what was lost",
      "look for a bad cable or port, or a full queue: ssh $HOST ip -s link"},
     {"long-way", Severity::kHarms,
      "a small message takes more than 20 ms there and back, three times",
      "every step waits that long several times",
      "use hosts of one site, or see 'ssh $HOST "
      "tracepath OTHER-HOST'"},
     {"slow-way", Severity::kHarms,
      "one connection, of three tries the best, carries less than 50 MB/s; or less than 300 MB/s "
      "and a quarter of what is "
      "usual among these hosts",
      "all ranks wait for the slowest way",
      "see that the link runs at its speed: ssh $HOST ethtool $INTERFACE; or name a faster "
      "network: HVRUN_INTERFACES=ib0"}},
    judge_ways};

}  // namespace hv::launcher
