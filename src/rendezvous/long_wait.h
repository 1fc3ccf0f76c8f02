// LongWait: says once that a wait takes long, and for whom.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "src/base/status.h"

namespace hv {

class LongWait {
 public:
  // words: what is logged as a warning if this still lives after so long; asked for then, by a
  // thread of its own. after 0: never.
  LongWait(std::chrono::milliseconds after, std::function<std::string()> words);
  ~LongWait();
  LongWait(const LongWait&) = delete;
  LongWait& operator=(const LongWait&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable change_;
  bool is_over_ = false;  // guarded by mutex_
  std::thread thread_;
};

// "rank 0 has waited 60 s for rank 3 to start libhvrun ..."
std::string waited_words(int rank, std::chrono::milliseconds waited, const std::string& missing);

// A rank that has come where all of the launcher's meet, and has not said who it is.
// Of this rank's first meeting. way: "PMIx". reason: the launcher's own.
Status silent_rank(const std::string& way, int self, int silent, const std::string& reason);

}  // namespace hv
