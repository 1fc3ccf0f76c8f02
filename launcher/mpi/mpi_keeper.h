// MpiKeeper: the process between hvrun and mpirun that ends all of it, whatever becomes of hvrun.
// SPDX-License-Identifier: Apache-2.0
//
//   hvrun --(signals to pass on; the socket's end: hvrun is gone)--> keeper --> mpirun --> ranks
//         <--(started or not; how mpirun has ended, once nothing is left)--
// The keeper is a child subreaper: what of the job runs on this machine stays below it, whoever's
// child it was. mpirun itself ends what it has started on other hosts. Should the keeper be killed,
// the kernel ends mpirun, and hvrun, which is a subreaper too, the rest.
#pragma once

#include <sys/types.h>

#include <optional>

#include "src/base/clock.h"
#include "src/base/unique_fd.h"
#include "src/process/child.h"
#include "src/process/exit_status.h"

namespace hv::launcher {

class MpiKeeper {
 public:
  // Forks; in a process without threads. streams: of mpirun, whose ends the caller closes then. A
  // session of its own, unless it reads the terminal. Throws Error(kStart) where mpirun does not
  // start. grace: between the first signal that ends it and SIGKILL for all.
  MpiKeeper(const Command& mpirun, const ChildOptions& streams, Duration grace);
  // The keeper ends the job, if it still runs.
  ~MpiKeeper();

  // Readable once there is an answer.
  int fd() const { return socket_.get(); }
  void pass_on(int signal);
  void expect_end();  // such a signal has reached mpirun by itself
  void pause();       // everything of it on this machine
  void go_on();       // what pause() has stopped
  void kill();        // everything, now; mpirun after all others
  // Takes the answer: how mpirun has ended; by SIGKILL where the keeper itself is gone.
  std::optional<ExitStatus> take_end();

 private:
  void tell(unsigned char word);

  UniqueFd socket_;
  pid_t pid_ = -1;
};

}  // namespace hv::launcher
