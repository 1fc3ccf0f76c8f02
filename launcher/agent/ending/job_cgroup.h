// The cgroup v2 leaf in which a host's ranks live, where one can be made: it lets the kernel end
// them all at once.
// SPDX-License-Identifier: Apache-2.0
//
// Everything here is an addition: where a cgroup cannot be made, moved into or killed, the search
// for descendants (descendant_hunt.h) does the work alone.
#pragma once

#include <cstdint>
#include <string>

namespace hv::launcher {

class JobCgroup {
 public:
  JobCgroup() = default;
  // Below this process's own group, if that is writable; else stays empty.
  static JobCgroup create(const std::string& job_id, std::uint32_t host_index);
  static JobCgroup at(std::string folder) { return JobCgroup(std::move(folder)); }

  bool exists() const { return !folder_.empty(); }
  const std::string& folder() const { return folder_; }  // empty without a group
  // SIGKILL to every process in it; kernels before 5.14 lack that, and nothing happens.
  void kill() const;
  // False while processes are still in it.
  bool remove();

 private:
  explicit JobCgroup(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
};

// Ends and removes what an earlier agent's groups of this job still hold, wherever below the mount
// they lie. False while one of them is not empty yet.
bool remove_cgroups_of(const std::string& job_id);

}  // namespace hv::launcher
