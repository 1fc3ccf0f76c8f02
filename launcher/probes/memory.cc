// SPDX-License-Identifier: Apache-2.0
#include "launcher/probes/memory.h"

#include <sys/statvfs.h>

#include <algorithm>

#include "launcher/facts/cgroup_paths.h"
#include "launcher/facts/read_file.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

std::optional<std::uint64_t> number_in(const std::string& file) {
  const auto number = parse_integer(trim(read_file(file).value_or("")));
  if (!number || *number < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

// "MemTotal:  16 kB" in bytes.
std::uint64_t meminfo_bytes(const std::string& text, const char* label) {
  const std::string value = value_after(label, text).value_or("");
  const auto kib = parse_integer(value.substr(0, value.find(' ')));
  return kib && *kib > 0 && *kib <= INT64_MAX / 1024 ? static_cast<std::uint64_t>(*kib) * 1024 : 0;
}

// used: without cached file pages, which the kernel drops when memory is needed.
struct GroupMemory {
  std::uint64_t limit = wire::kNoLimit;
  std::uint64_t used = 0;
};

GroupMemory group_memory(const std::string& directory) {
  GroupMemory group;
  for (const char* name : {"/memory.max", "/memory.limit_in_bytes"})
    if (const auto limit = number_in(directory + name)) group.limit = std::min(group.limit, *limit);
  for (const char* name : {"/memory.current", "/memory.usage_in_bytes"})
    if (const auto used = number_in(directory + name)) group.used = *used;
  const std::string text = read_file(directory + "/memory.stat").value_or("");
  for (const char* label : {"inactive_file ", "active_file "}) {
    const auto bytes = parse_integer(value_after(label, text).value_or(""));
    if (bytes && *bytes > 0) group.used -= std::min(group.used, static_cast<std::uint64_t>(*bytes));
  }
  return group;
}

}  // namespace

wire::MemoryFacts memory_facts(const std::string& root) {
  wire::MemoryFacts facts;
  const std::string text = read_file(root + "/proc/meminfo").value_or("");
  facts.total_bytes = meminfo_bytes(text, "MemTotal:");
  facts.available_bytes = meminfo_bytes(text, "MemAvailable:");
  if (facts.available_bytes == 0)  // Linux before 3.14
    facts.available_bytes = meminfo_bytes(text, "MemFree:") + meminfo_bytes(text, "Cached:");
  for (const std::string& directory : own_cgroup_folders(root, "memory")) {
    const GroupMemory group = group_memory(directory);
    // The v1 file of an unlimited group holds a number beyond every machine.
    if (group.limit >= facts.total_bytes) continue;
    facts.cgroup_bytes = std::min(facts.cgroup_bytes, group.limit);
    facts.available_bytes =
        std::min(facts.available_bytes, group.limit - std::min(group.limit, group.used));
  }
  struct statvfs shm {};
  if (::statvfs((root + "/dev/shm").c_str(), &shm) == 0) {
    facts.shm_bytes = std::uint64_t{shm.f_blocks} * shm.f_frsize;
    facts.shm_free_bytes = std::uint64_t{shm.f_bavail} * shm.f_frsize;
  }
  return facts;
}

void inspect_memory(const wire::CheckRequest&, const Environment&, wire::CheckReply* reply) {
  reply->memory = memory_facts("");
}

}  // namespace hv::launcher
