// PythonStart: the directory that is first on PYTHONPATH of this host's ranks. Its sitecustomize.py
// makes each Python program offer its stacks and report its waits in torch.distributed.
// SPDX-License-Identifier: Apache-2.0
//
// It belongs to the job and the host: 0700, in /dev/shm, else in /tmp. The agent removes it when it
// leaves, the guard where the agent was killed, and a sweep where both were.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/agent/helper_program.h"
#include "src/contract/rank_environment.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// A file of the directory, as it was when the agent was built. The list is generated.
struct PythonFile {
  std::string_view name;
  std::string_view text;
};
const std::vector<PythonFile>& python_start_files();

class PythonStart {
 public:
  // Before the ranks start. Where the directory cannot be made, Python programs start without it.
  void create(const wire::SetupRequest& setup);
  const std::string& directory() const { return directory_.path(); }  // empty: there is none
  // Unless the rank's HVRUN_PYTHON_START is 0.
  void add_to(RankEnvironment* environment) const;
  void remove() { directory_.remove(); }

 private:
  PrivateDirectory directory_;
};

// Removes the directory of a lost agent.
void remove_python_directory(const std::string& job_id, std::uint32_t host_id);
// PYTHONPATH with the directory first. before: its value so far, whose directory of an outer job is
// left out. An empty value stays out, because Python takes an empty entry for the working
// directory. Pure.
std::string python_path(const std::string& directory, const std::string& before);

}  // namespace hv::launcher
