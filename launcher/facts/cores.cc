// SPDX-License-Identifier: Apache-2.0
#include "launcher/facts/cores.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "launcher/facts/cgroup_paths.h"
#include "launcher/facts/read_file.h"
#include "src/base/core_mask.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

std::optional<double> quota_of_v1(const std::string& folder) {
  const auto quota = parse_integer(trim(read_file(folder + "/cpu.cfs_quota_us").value_or("")));
  const auto period = parse_integer(trim(read_file(folder + "/cpu.cfs_period_us").value_or("")));
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<double> quota_of(const std::string& folder) {
  if (const auto text = read_file(folder + "/cpu.max")) return parse_cpu_max(*text);
  return quota_of_v1(folder);
}

}  // namespace

std::optional<double> parse_cpu_max(const std::string& text) {
  const std::vector<std::string> words = split(trim(text), ' ');
  if (words.size() != 2) return std::nullopt;
  const auto quota = parse_integer(words[0]);
  const auto period = parse_integer(words[1]);
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<unsigned> quota_cores(const std::string& root) {
  std::optional<double> least;
  for (const std::string& folder : own_cgroup_folders(root, "cpu")) {
    if (const auto quota = quota_of(folder)) least = std::min(least.value_or(*quota), *quota);
  }
  if (!least) return std::nullopt;
  // No machine has as many, and no unsigned holds every quota.
  return static_cast<unsigned>(std::clamp(std::ceil(*least), 1.0, 1048576.0));
}

unsigned usable_cores(const std::string& root) {
  const auto allowed = static_cast<unsigned>(std::max(1, count_cores(own_cores())));
  return std::max(1u, std::min(allowed, quota_cores(root).value_or(allowed)));
}

}  // namespace hv::launcher
