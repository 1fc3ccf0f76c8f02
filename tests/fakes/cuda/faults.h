// What the stand-in for a library is told to do wrong, and how slow it is. LIBRARY is CUDA or NCCL.
// SPDX-License-Identifier: Apache-2.0
//
// HVRUN_FAKE_LIBRARY_FAULTS: "FUNCTION@N=RESULT" or "FUNCTION@N=hang", several with commas: the
// N-th call of that function in this process, from 1 on, answers with that number of the library's,
// or what it puts on a stream never ends. HVRUN_FAKE_LIBRARY_DELAY_US: what each thing waits for at
// most before it is done (CUDA: on a stream; NCCL: before it is put on one), by a generator that
// HVRUN_FAKE_LIBRARY_SEED starts.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <random>
#include <string>

namespace hv::fake {

class Faults {
 public:
  // Of this process's variables; each stand-in defines it with its own library.
  static Faults& of_process();
  explicit Faults(const std::string& library);  // "CUDA"

  enum class Way { kNone, kResult, kHang };
  struct Fault {
    Way way = Way::kNone;
    int result = 0;
  };
  // Instead of what was to go wrong, in calls from now on.
  void begin_anew(const std::string& list);
  // Counts a call of that function.
  Fault take(const std::string& function);
  int calls(const std::string& function);  // by now
  std::chrono::microseconds next_delay();

 private:
  void read(const std::string& list);

  [[noreturn]] void refuse(const std::string& word) const;

  const std::string library_;
  std::mutex mutex_;  // guards all below
  std::map<std::pair<std::string, int>, Fault> faults_;
  std::map<std::string, int> calls_;
  std::mt19937 random_;
  std::int64_t most_delay_us_ = 0;
};

}  // namespace hv::fake
