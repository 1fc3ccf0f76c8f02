// SPDX-License-Identifier: Apache-2.0
#include "launcher/facts/bound_cores.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "launcher/facts/process_table.h"
#include "launcher/facts/read_file.h"
#include "launcher/facts/topology.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

CoreMask common_cores(const CoreMask& one, const CoreMask& other) {
  CoreMask common(std::min(one.size(), other.size()));
  for (std::size_t i = 0; i < common.size(); ++i) common[i] = one[i] & other[i];
  return common;
}

// Cores that a process is bound to, as its status text says; none where it may run on all.
CoreMask bound_cores(const std::string& status, const CoreMask& usable) {
  const auto listed = parse_core_list(value_after("Cpus_allowed_list:", status).value_or(""));
  if (!listed) return {};
  CoreMask allowed = mask_of(*listed);
  const bool is_free = count_cores(common_cores(allowed, usable)) == count_cores(usable);
  return is_free ? CoreMask{} : allowed;
}

// A rank of another job. environ_text: entries end in zero bytes.
bool is_rank_of_other_job(const std::string& environ_text, const std::string& job_id) {
  const std::vector<std::string> entries = split(environ_text, '\0');
  const auto has = [&entries](std::string_view name) {
    return std::any_of(entries.begin(), entries.end(),
                       [name](const std::string& entry) { return entry.starts_with(name); });
  };
  return has("HVRUN_RANK=") && has("HVRUN_JOB_ID=") &&
         !environ_holds(environ_text, "HVRUN_JOB_ID=" + job_id);
}

std::vector<int> cores_in(const CoreMask& mask) {
  std::vector<int> cores;
  for (std::size_t core = 0; core < mask.size() * 64; ++core)
    if ((mask[core / 64] >> core % 64 & 1) != 0) cores.push_back(static_cast<int>(core));
  return cores;
}

}  // namespace

std::string describe_shared_cores(const std::string& job_id, const CoreMask& cores,
                                  const CoreMask& usable, const std::string& proc) {
  if (count_cores(cores) == 0) return "";
  CoreMask shared;
  std::string first;
  for (const std::string& pid : names_in(proc)) {
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string directory = proc + "/" + pid;
    const CoreMask bound = bound_cores(read_file(directory + "/status").value_or(""), usable);
    const CoreMask common = common_cores(bound, cores);
    if (count_cores(common) == 0) continue;
    if (!is_rank_of_other_job(read_file(directory + "/environ").value_or(""), job_id)) continue;
    unite(&shared, common);
    if (first.empty()) first = pid;
  }
  if (first.empty()) return "";
  return "ranks of another hvrun job are bound to " + ranges_of("core", cores_in(shared)) +
         ", too (such as pid " + first + ")";
}

}  // namespace hv::launcher
