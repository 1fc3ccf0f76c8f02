// Hosts with which nothing is wrong, for tests to spoil.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launcher/check/probe.h"
#include "tests/unit/check/healthy.h"

namespace hv::launcher {

// n1 to nN, with two ranks each.
inline CheckInput healthy_hosts(std::size_t count) {
  CheckInput input;
  input.spec.programs.push_back({{"./train"}, "/work", static_cast<int>(2 * count)});
  for (std::size_t i = 0; i < count; ++i) {
    CheckedHost host;
    host.name = "n" + std::to_string(i + 1);
    host.facts.emplace();
    host.facts->hostname = host.name;
    host.facts->usable_cores = 8;
    host.facts->addresses = {"10.0.0." + std::to_string(i + 1)};
    host.clock_error_s = 0.001;
    host.told = tests::healthy_reply();
    host.ranks = {static_cast<int>(2 * i), static_cast<int>(2 * i + 1)};
    input.hosts.push_back(host);
    input.plan.hosts.emplace_back();
    input.plan.hosts.back().name = host.name;
    for (const int rank : host.ranks) {
      PlannedRank planned;
      planned.identity.rank = rank;
      planned.host = static_cast<int>(i);
      input.plan.ranks.push_back(planned);
    }
  }
  for (std::size_t from = 0; from < count; ++from)
    for (std::size_t to = 0; to < count; ++to)
      if (from != to) {
        PairFacts pair;
        pair.from = from;
        pair.to = to;
        pair.tried = pair.reached = input.hosts[to].facts->addresses;
        input.pairs.push_back(pair);
      }
  return input;
}

// As where none could be made.
inline void forget_plan(CheckInput* input) {
  input->plan = {};
  for (CheckedHost& host : input->hosts) host.ranks.clear();
}

// "verdict: hosts" of each finding, in their order.
inline std::vector<std::string> verdicts_of(const CheckInput& input) {
  std::vector<std::string> verdicts;
  for (const Finding& finding : judge(input).findings) {
    std::string words = finding.verdict + ":";
    for (const std::string& host : finding.hosts) words += " " + host;
    verdicts.push_back(words);
  }
  return verdicts;
}

}  // namespace hv::launcher
