// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ending/job_cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "launcher/facts/cgroup_paths.h"
#include "launcher/facts/read_file.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {
namespace {

// Bounds of the search for cgroups of an earlier agent; a busy machine has a few hundred cgroups.
constexpr int kDeepest = 8;
constexpr std::size_t kMostDirectories = 20000;

std::string prefix_of(const std::string& job_id) { return "hvrun-" + job_id + "-"; }

bool is_directory(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

void find_groups(const std::string& directory, const std::string& prefix, int depth,
                 std::size_t* left, std::vector<std::string>* found) {
  for (const std::string& name : names_in(directory)) {
    const std::string path = directory + "/" + name;
    // Controller files ("cpu.max") have a dot in their names as slices do; only lstat separates
    // them.
    if (*left == 0 || !is_directory(path)) continue;
    --*left;
    if (name.compare(0, prefix.size(), prefix) == 0) found->push_back(path);
    if (depth < kDeepest) find_groups(path, prefix, depth + 1, left, found);
  }
}

}  // namespace

JobCgroup JobCgroup::create(const std::string& job_id, std::uint32_t host_id) {
  const std::string own = own_v2_folder("");
  if (own.empty()) return {};
  // Moving a process needs write access to cgroup.procs of the nearest common ancestor: the own
  // cgroup.
  if (::access((own + "/cgroup.procs").c_str(), W_OK) != 0) return {};
  const std::string directory = own + "/" + prefix_of(job_id) + std::to_string(host_id);
  if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) return {};
  return JobCgroup(directory);
}

void JobCgroup::kill() const {
  if (!exists()) return;
  const UniqueFd fd(::open((directory_ + "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC));
  // A failure is ignored: every process is also killed individually.
  if (fd && ::write(fd.get(), "1", 1) != 1) return;
}

bool JobCgroup::remove() {
  if (!exists()) return true;
  if (::rmdir(directory_.c_str()) != 0 && errno == EBUSY) return false;
  directory_.clear();
  return true;
}

bool remove_cgroups_of(const std::string& job_id) {
  bool gone = true;
  for (const CgroupMount& mount :
       parse_cgroup_mounts(read_file("/proc/self/mounts").value_or(""))) {
    if (!mount.is_v2) continue;
    std::size_t left = kMostDirectories;
    std::vector<std::string> found;
    find_groups(mount.point, prefix_of(job_id), 0, &left, &found);
    for (const std::string& directory : found) {
      JobCgroup group = JobCgroup::at(directory);
      group.kill();
      gone = group.remove() && gone;
    }
  }
  return gone;
}

}  // namespace hv::launcher
