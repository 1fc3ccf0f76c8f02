// The GPUs of this process, by CUDA's driver.
// SPDX-License-Identifier: Apache-2.0
//
// A device is made ready when it is first asked for: its primary context, which the program's own
// library uses too, and one stream of the highest priority. While a call of ours is under way its
// thread has that context, and may do what a capture in another thread forbids.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/device/accelerator.h"
#include "runtime/device/cuda/driver.h"

namespace hv::cuda {

class CudaAccelerator : public runtime::Accelerator {
 public:
  explicit CudaAccelerator(std::shared_ptr<const Driver> driver);
  ~CudaAccelerator() override;

  // The process's: the first call opens the driver, and what came of that stays.
  static Status of_process(std::shared_ptr<runtime::Accelerator>* found);
  // Makes it ready. kArgument: there is none of that number.
  Status find(int device, std::shared_ptr<class Device>* found);

  Status mark(int device, void* stream, runtime::MomentPtr* made) override;
  Status follow(int device, void* stream, const runtime::Moment& moment) override;
  Status poll(const runtime::Moment& moment) override;
  Status allocate(int device, Room room, std::size_t bytes, runtime::MemoryPtr* made) override;
  void keep_until(runtime::MomentPtr moment, runtime::MemoryPtr memory) override;
  void release_passed() override;
  bool keeps_any() const override { return kept_count_ > 0; }
  Status within(int device, const std::function<Status()>& action) override;
  Status await(int device, const runtime::Moment& moment) override;
  Status copy(int device, Way way, void* to, const void* from, std::size_t bytes) override;
  Status mark_work(int device, runtime::MomentPtr* made) override;

 private:
  struct Kept {
    runtime::MomentPtr moment;
    runtime::MemoryPtr memory;
  };

  template <class Action>
  Status on(int device, Action&& action);

  const std::shared_ptr<const Driver> driver_;
  std::mutex mutex_;  // guards all below
  std::vector<std::shared_ptr<class Device>> devices_;
  std::vector<Kept> kept_;
  std::atomic<std::size_t> kept_count_{0};
};

}  // namespace hv::cuda
