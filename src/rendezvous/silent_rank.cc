// SPDX-License-Identifier: Apache-2.0
#include "src/rendezvous/silent_rank.h"

#include <unistd.h>

#include <climits>

namespace hv {

// MPI's beginning is such a meeting, too: a rank that takes part in it there is not missed by the
// launcher, and waits by MPI for those that are here.
Status silent_rank(const std::string& way, int self, int silent, const std::string& reason) {
  char host[HOST_NAME_MAX + 1] = "";
  ::gethostname(host, sizeof host - 1);
  return {StatusCode::kContract,
          "rank " + std::to_string(self) + " on host " + host + ": meet the other ranks by " + way +
              ": rank " + std::to_string(silent) + " has not said who it is (" + reason +
              "): it meets the others in another way, as by MPI, or is no program of libhvrun's; "
              "try: HVRUN_BACKEND and HVRUN_MPI alike on all ranks (mpirun -x HVRUN_BACKEND -x "
              "HVRUN_MPI), and the same program and libhvrun"};
}

}  // namespace hv
