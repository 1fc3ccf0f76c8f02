// SPDX-License-Identifier: Apache-2.0
#include "launcher/probes/load.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <utility>
#include <vector>

#include "launcher/facts/read_file.h"
#include "launcher/probes/host_probe.h"
#include "src/base/clock.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr auto kSampleTime = std::chrono::milliseconds(500);
constexpr double kWorthNaming = 0.5;  // cores

std::uint64_t number(const std::vector<std::string>& fields, std::size_t index) {
  const auto value = index < fields.size() ? parse_integer(fields[index]) : std::nullopt;
  return value && *value > 0 ? static_cast<std::uint64_t>(*value) : 0;
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  for (std::string& field : split(line, ' '))
    if (!field.empty()) fields.push_back(std::move(field));
  return fields;
}

// "cpu user nice system idle iowait irq softirq steal ...". Stolen time counts as busy: ranks
// cannot use it.
void parse_totals(const std::string& text, LoadSample* sample) {
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> fields = fields_of(line);
    if (fields.empty() || fields[0].rfind("cpu", 0) != 0) continue;
    if (fields[0] != "cpu") {
      ++sample->cores;
      continue;
    }
    for (const std::size_t index : {1, 2, 3, 6, 7, 8}) sample->busy_ticks += number(fields, index);
  }
}

bool is_own_name(const std::string& name) {
  for (const char* own : {"hvrun", "hvrun-agent", "hvrun-inventory", "hvrun-pmix", kProbeName})
    if (name == own) return true;
  return false;
}

// Ranks of another job are children of an agent, and count as load.
bool is_own(const ProcessEntry& process, const LoadSample& sample) {
  if (is_own_name(process.name)) return true;
  const auto parent = sample.processes.find(process.parent);
  return parent != sample.processes.end() && parent->second.name == kProbeName;
}

// Reads only /etc/passwd: a static program cannot load other name services.
std::string user_name(uid_t uid, const std::string& root) {
  for (const std::string& line : split(read_file(root + "/etc/passwd").value_or(""), '\n')) {
    const std::vector<std::string> fields = split(line, ':');
    if (fields.size() > 2 && fields[2] == std::to_string(uid)) return fields[0];
  }
  return "user " + std::to_string(uid);
}

std::string describe_process(const ProcessEntry& process, double cores, const std::string& root) {
  struct stat info {};
  const bool is_there = ::stat((root + "/proc/" + std::to_string(process.pid)).c_str(), &info) == 0;
  char share[32];
  std::snprintf(share, sizeof share, "%.1f", cores);
  return process.name + " (pid " + std::to_string(process.pid) +
         (is_there ? ", " + user_name(info.st_uid, root) : "") + ") " + share + " cores";
}

}  // namespace

LoadSample load_sample(const std::string& root) {
  LoadSample sample;
  parse_totals(read_file(root + "/proc/stat").value_or(""), &sample);
  for (ProcessEntry& process : read_processes(root + "/proc"))
    sample.processes.emplace(process.pid, std::move(process));
  return sample;
}

// The load of the visible processes, bounded by the busy time of the cores, which also holds
// hvrun's own programs and, where containers share a machine, the probes of other agents.
wire::LoadFacts load_between(const LoadSample& before, const LoadSample& after, double ticks,
                             const std::string& root) {
  wire::LoadFacts facts;
  facts.cores = after.cores;
  if (ticks <= 0) return facts;
  double seen = 0, most = kWorthNaming;
  for (const auto& [pid, process] : after.processes) {
    if (is_own(process, after)) continue;
    const auto earlier = before.processes.find(pid);
    const bool is_same =
        earlier != before.processes.end() && earlier->second.start_time == process.start_time;
    const std::uint64_t had = is_same ? std::min(earlier->second.cpu_ticks, process.cpu_ticks) : 0;
    const double cores = static_cast<double>(process.cpu_ticks - had) / ticks;
    seen += cores;
    if (cores <= most) continue;
    most = cores;
    facts.busiest = describe_process(process, cores, root);
  }
  const std::uint64_t busy = after.busy_ticks - std::min(after.busy_ticks, before.busy_ticks);
  facts.busy_cores = std::min(seen, static_cast<double>(busy) / ticks);
  return facts;
}

std::string slowest_governor(const std::string& root) {
  // Other governors follow the load.
  const auto rank = [](const std::string& governor) {
    return governor == "performance" ? 2 : governor == "powersave" ? 0 : 1;
  };
  const std::string cpus = root + "/sys/devices/system/cpu";
  std::string slowest;
  for (const std::string& name : names_in(cpus)) {
    const auto text = read_file(cpus + "/" + name + "/cpufreq/scaling_governor");
    const std::string governor(trim(text.value_or("")));
    if (!governor.empty() && (slowest.empty() || rank(governor) < rank(slowest)))
      slowest = governor;
  }
  return slowest;
}

void inspect_load(const wire::CheckRequest&, const Environment&, wire::CheckReply* reply) {
  const LoadSample before = load_sample("");
  const TimePoint begun = now();
  while (now() < begun + kSampleTime) {
    const timespec left = time_left(begun + kSampleTime);
    ::nanosleep(&left, nullptr);
  }
  const LoadSample after = load_sample("");
  const double ticks = seconds_since(begun) * static_cast<double>(::sysconf(_SC_CLK_TCK));
  reply->load = load_between(before, after, ticks, "");
  reply->load.governor = slowest_governor("");
}

}  // namespace hv::launcher
