// Hosts on which nothing is wrong, for tests to break.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>

#include "launcher/check/probe.h"

namespace hv::tests {

constexpr std::uint64_t kMiB = 1 << 20, kGiB = 1 << 30;

inline wire::ProgramFacts healthy_program() {
  wire::ProgramFacts program;
  program.path = "/home/ada/run/train";
  program.digest = "0123456789abcdef";
  program.interpreter = "/lib64/ld-linux-x86-64.so.2";
  return program;
}

inline wire::PythonFacts healthy_python() {
  return {
      "/usr/bin/python3",
      "3.11.2",
      "/usr",
      {{"torch", "2.13.0"}, {"hvrun", "0.1.0"}, {"numpy", "2.1.0"}, {"libhvrun", "aabbccdd00"}}};
}

inline wire::CheckReply healthy_reply() {
  wire::CheckReply told;
  const std::uint64_t room = 50 * kGiB;
  told.folders = {{"working directory", "/home/ada/run", "", "/dev/sda1", "ext4", 12, room, 900000},
                  {"temporary directory", "/tmp", "", "tmpfs", "tmpfs", 1, room, 900000}};
  told.programs = {healthy_program()};
  told.limits = {wire::kNoLimit, 1024, 8 * kMiB, 30000, 200};
  told.memory = {16 * kGiB, 12 * kGiB, wire::kNoLimit, 8 * kGiB, 8 * kGiB};
  told.load = {8, 0.1, "", "schedutil"};
  return told;
}

inline launcher::CheckInput healthy_input(int hosts, int ranks_of_host = 2) {
  launcher::CheckInput input;
  input.spec.programs = {{{"./train"}, "/home/ada/run"}};
  for (int i = 0; i < hosts; ++i) {
    launcher::CheckedHost host;
    host.name = "n" + std::to_string(i + 1);
    host.facts.emplace();
    host.facts->usable_cores = 8;
    host.told = healthy_reply();
    for (int local = 0; local < ranks_of_host; ++local) {
      launcher::PlannedRank rank;
      rank.host = i;
      host.ranks.push_back(static_cast<int>(input.plan.ranks.size()));
      input.plan.ranks.push_back(rank);
    }
    input.hosts.push_back(std::move(host));
  }
  return input;
}

// The one finding with that verdict; an empty one where there is none or are several.
inline launcher::Finding finding_of(const launcher::CheckInput& input, const std::string& verdict) {
  const launcher::CheckReport report = launcher::judge(input);
  const auto is_it = [&verdict](const auto& one) { return one.verdict == verdict; };
  if (std::count_if(report.findings.begin(), report.findings.end(), is_it) != 1) return {};
  return *std::find_if(report.findings.begin(), report.findings.end(), is_it);
}

inline std::string all_verdicts(const launcher::CheckInput& input) {
  std::string verdicts;
  for (const launcher::Finding& finding : launcher::judge(input).findings)
    verdicts += (verdicts.empty() ? "" : " ") + finding.verdict;
  return verdicts;
}

}  // namespace hv::tests
