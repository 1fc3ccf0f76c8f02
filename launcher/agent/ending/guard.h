// The guard: the agent's parent, which ends the job on this host should the agent be killed.
// SPDX-License-Identifier: Apache-2.0
//
// The process that hvrun starts becomes the guard and forks the agent. Both are child subreapers,
// one inside the other: while the agent lives, the job's orphans become its children; once it is
// gone, they and everything below become the guard's, which kills until nothing is left and leaves.
// The guard holds neither hvrun's streams nor the ranks' pipes, so that their end is seen, and it
// runs under another name, so that a match by the agent's name (pkill -f hvrun-agent) spares it.
// In turn, the agent reads a pipe whose only writer is the guard: its end means that the guard is
// gone. A new guard could not become the parent of processes that run already, so the agent then
// ends the job.
#pragma once

#include <string>

#include "src/base/unique_fd.h"

namespace hv::launcher {

// The directories that the agent reports to its guard, in memory that both share. They are written
// before the ranks start.
class GuardBoard {
 public:
  GuardBoard();  // before the fork
  void write_cgroup(const std::string& directory);
  std::string cgroup() const;
  // Directories of the job that the guard removes if the agent is killed.
  void write_mpi_directory(const std::string& directory);
  std::string mpi_directory() const;
  void write_python_directory(const std::string& directory);
  std::string python_directory() const;

 private:
  struct Text;
  struct Page;
  Page* page_;
};

// Forks. Returns in the child, which is the agent, with the pipe that ends when the guard does. The
// parent becomes the guard and never returns: it leaves with the agent's exit code when all is
// over. argv: of main; the guard writes its own name over it.
UniqueFd split_off_guard(int argc, char** argv, GuardBoard* board);

}  // namespace hv::launcher
