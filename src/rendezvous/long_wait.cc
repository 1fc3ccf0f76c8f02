// SPDX-License-Identifier: Apache-2.0
#include "src/rendezvous/long_wait.h"

#include <utility>

#include "src/base/clock.h"
#include "src/base/log.h"
#include "src/base/signal_block.h"
#include "src/net/interfaces.h"

namespace hv {

LongWait::LongWait(std::chrono::milliseconds after, std::function<std::string()> words) {
  if (after <= std::chrono::milliseconds::zero()) return;
  const SignalBlock block;  // our threads handle none
  thread_ = std::thread([this, after, words = std::move(words)] {
    std::unique_lock lock(mutex_);
    if (change_.wait_for(lock, after, [this] { return is_over_; })) return;
    HV_LOG(kWarn, "rendezvous") << words();
  });
}

LongWait::~LongWait() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  change_.notify_one();
  thread_.join();
}

std::string waited_words(int rank, std::chrono::milliseconds waited, const std::string& missing) {
  return "rank " + std::to_string(rank) + " has waited " + format_duration(waited) + " for " +
         missing + " to start libhvrun (hvrun_init, hvd.init()), and goes on waiting; look " +
         "whether it has ended, never gets there, or still prepares its data";
}

// MPI's beginning is such a meeting, too: a rank that takes part in it there is not missed by the
// launcher, and waits by MPI for those that are here.
Status silent_rank(const std::string& way, int self, int silent, const std::string& reason) {
  return {StatusCode::kContract,
          "rank " + std::to_string(self) + " on host " + own_hostname() +
              ": meet the other ranks by " + way + ": rank " + std::to_string(silent) +
              " has not said who it is (" + reason +
              "): it meets the others in another way, as by MPI, or is no program of libhvrun's; "
              "try: HVRUN_BACKEND and HVRUN_MPI alike on all ranks (mpirun -x HVRUN_BACKEND -x "
              "HVRUN_MPI), and the same program and libhvrun"};
}

}  // namespace hv
