// SPDX-License-Identifier: Apache-2.0
#include "launcher/probes/limits.h"

#include <dirent.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "launcher/facts/cgroup_paths.h"
#include "launcher/facts/read_file.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

std::uint64_t soft_limit(int resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return wire::kNoLimit;
  return limit.rlim_cur == RLIM_INFINITY ? wire::kNoLimit : limit.rlim_cur;
}

// A process with the capability is exempt from the limit.
bool has_capability(unsigned number) {
  const std::string status = read_file("/proc/self/status").value_or("");
  return (bits_after("CapEff:", status).value_or(0) >> number & 1) != 0;
}

// RLIMIT_NPROC counts threads. A directory "task" has two links more than threads.
std::uint64_t threads_of(int proc, const std::string& pid) {
  struct stat threads {};
  if (::fstatat(proc, (pid + "/task").c_str(), &threads, 0) != 0 || threads.st_nlink < 3) return 1;
  return threads.st_nlink - 2;
}

}  // namespace

std::uint64_t processes_of_user() {
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  std::uint64_t count = 0;
  while (const dirent* entry = proc ? ::readdir(proc.get()) : nullptr) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    struct stat info {};
    if (::fstatat(::dirfd(proc.get()), entry->d_name, &info, 0) == 0 && info.st_uid == ::getuid())
      count += threads_of(::dirfd(proc.get()), entry->d_name);
  }
  return count;
}

void narrow_to_cgroups(const std::string& root, wire::LimitFacts* facts) {
  const auto left = [facts] {
    return facts->processes - std::min(facts->processes, facts->processes_of_user);
  };
  for (const std::string& directory : own_cgroup_folders(root, "pids")) {
    const auto most = parse_integer(trim(read_file(directory + "/pids.max").value_or("")));
    const auto now = parse_integer(trim(read_file(directory + "/pids.current").value_or("")));
    if (!most || !now || *now < 0 || *most < *now) continue;
    if (static_cast<std::uint64_t>(*most - *now) >= left()) continue;
    facts->processes = static_cast<std::uint64_t>(*most);
    facts->processes_of_user = static_cast<std::uint64_t>(*now);
  }
}

void inspect_limits(const wire::CheckRequest&, const Environment&, wire::CheckReply* reply) {
  reply->limits = {soft_limit(RLIMIT_MEMLOCK), soft_limit(RLIMIT_NOFILE), soft_limit(RLIMIT_STACK),
                   soft_limit(RLIMIT_NPROC), 0};
  if (has_capability(CAP_IPC_LOCK)) reply->limits.locked_bytes = wire::kNoLimit;
  if (::getuid() == 0 || has_capability(CAP_SYS_RESOURCE)) reply->limits.processes = wire::kNoLimit;
  if (reply->limits.processes != wire::kNoLimit)
    reply->limits.processes_of_user = processes_of_user();
  narrow_to_cgroups("", &reply->limits);
}

}  // namespace hv::launcher
