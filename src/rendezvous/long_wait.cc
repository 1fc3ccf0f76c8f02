// SPDX-License-Identifier: Apache-2.0
#include "src/rendezvous/long_wait.h"

#include <utility>

#include "src/base/clock.h"
#include "src/base/log.h"
#include "src/base/signal_block.h"

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
  return "rank " + std::to_string(rank) + " has waited " + seconds_text(waited) + " for " +
         missing + " to start libhvrun (hvrun_init, hvd.init()), and goes on waiting; look " +
         "whether it has ended, never gets there, or still prepares its data";
}

}  // namespace hv
