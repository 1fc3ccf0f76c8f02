// JobCgroup: the cgroup v2 leaf of a host's ranks, where one can be made. With it the kernel ends
// all ranks at once.
// SPDX-License-Identifier: Apache-2.0
//
// A cgroup is optional: where it cannot be made, entered or killed, the search for descendants
// (descendant_hunt.h) suffices.
#pragma once

#include <cstdint>
#include <string>

namespace hv::launcher {

class JobCgroup {
 public:
  JobCgroup() = default;
  // Below this process's own group, if that is writable; else stays empty.
  static JobCgroup create(const std::string& job_id, std::uint32_t host_id);
  static JobCgroup at(std::string directory) { return JobCgroup(std::move(directory)); }

  bool exists() const { return !directory_.empty(); }
  const std::string& directory() const { return directory_; }  // empty without a group
  // Sends SIGKILL to every process in it; without effect before Linux 5.14.
  void kill() const;
  // False while processes are still in it.
  bool remove();

 private:
  explicit JobCgroup(std::string directory) : directory_(std::move(directory)) {}
  std::string directory_;
};

// Kills the processes in cgroups of this job that an earlier agent has made, anywhere below the
// mount, and removes these cgroups. False while one of them is not empty yet.
bool remove_cgroups_of(const std::string& job_id);

}  // namespace hv::launcher
