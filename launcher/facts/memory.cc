// SPDX-License-Identifier: Apache-2.0
#include "launcher/facts/memory.h"

#include <algorithm>

#include "launcher/facts/cgroup_paths.h"
#include "launcher/facts/read_file.h"
#include "src/base/text.h"

namespace hv::launcher {

std::uint64_t memory_bytes(const std::string& root) {
  std::uint64_t bytes = 0;
  const std::string total =
      value_after("MemTotal:", read_file(root + "/proc/meminfo").value_or("")).value_or("");
  const auto kib = parse_integer(total.substr(0, total.find(' ')));
  if (kib && *kib > 0 && *kib <= INT64_MAX / 1024) bytes = static_cast<std::uint64_t>(*kib) * 1024;
  for (const std::string& folder : own_cgroup_folders(root, "memory")) {
    for (const char* name : {"/memory.max", "/memory.limit_in_bytes"}) {
      // "max" is no number, and the v1 file of an unlimited group holds one beyond every machine.
      const auto limit = parse_integer(trim(read_file(folder + name).value_or("")));
      if (limit && *limit > 0) bytes = std::min(bytes, static_cast<std::uint64_t>(*limit));
    }
  }
  return bytes;
}

}  // namespace hv::launcher
