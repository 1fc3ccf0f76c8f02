// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/cuda_accelerator.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/device/cuda/device.h"

namespace hv::cuda {

using runtime::MemoryPtr;
using runtime::Moment;
using runtime::MomentPtr;

CudaAccelerator::CudaAccelerator(std::shared_ptr<const Driver> driver)
    : driver_(std::move(driver)), devices_(static_cast<std::size_t>(driver_->devices())) {}

CudaAccelerator::~CudaAccelerator() = default;

// Never destroyed: results that lie on a GPU may outlive everything else.
Status CudaAccelerator::of_process(std::shared_ptr<runtime::Accelerator>* found) {
  struct Opened {
    Status status;
    std::shared_ptr<runtime::Accelerator> accelerator;
  };
  static const Opened* const opened = [] {
    auto* one = new Opened;
    std::shared_ptr<const Driver> driver;
    one->status = Driver::open("libcuda.so.1", &driver);
    if (one->status.ok()) one->accelerator = std::make_shared<CudaAccelerator>(std::move(driver));
    return one;
  }();
  *found = opened->accelerator;
  return opened->status;
}

namespace {

const Device::RecordedEvent& recorded_event(const Moment& moment) {
  return static_cast<const Device::RecordedEvent&>(moment);  // there are no others
}

}  // namespace

Status CudaAccelerator::find(int device, std::shared_ptr<Device>* found) {
  if (device < 0 || device >= driver_->devices())
    return {StatusCode::kArgument, "there is no GPU " + std::to_string(device) +
                                       ": this process sees " + std::to_string(driver_->devices()) +
                                       ", numbered from 0"};
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Device>& one = devices_[static_cast<std::size_t>(device)];
  if (one == nullptr) {
    if (Status status = Device::open(driver_, device, &one); !status.ok()) return status;
  }
  *found = one;
  return Status::success();
}

// action: on the device, which is made ready before.
template <class Action>
Status CudaAccelerator::on(int device, Action&& action) {
  std::shared_ptr<Device> found;
  Status status = find(device, &found);
  return status.ok() ? action(*found) : status;
}

Status CudaAccelerator::mark(int device, void* stream, MomentPtr* made) {
  return on(device,
            [&](Device& one) { return one.mark_callers(static_cast<Stream>(stream), made); });
}

Status CudaAccelerator::follow(int device, void* stream, const Moment& moment) {
  return on(device, [&](Device& one) { return one.wait_in(static_cast<Stream>(stream), moment); });
}

Status CudaAccelerator::poll(const Moment& moment) {
  return recorded_event(moment).device().poll(recorded_event(moment).event());
}

Status CudaAccelerator::allocate(int device, Room room, std::size_t bytes, MemoryPtr* made) {
  release_passed();
  return on(device, [&](Device& one) {
    return room == Room::kPinned ? one.allocate_pinned(bytes, made) : one.allocate(bytes, made);
  });
}

void CudaAccelerator::keep_until(MomentPtr moment, MemoryPtr memory) {
  const std::lock_guard lock(mutex_);
  kept_.push_back({std::move(moment), std::move(memory)});
  kept_count_ = kept_.size();
}

void CudaAccelerator::release_passed() {
  std::vector<Kept> passed;  // let go of without the lock
  {
    const std::lock_guard lock(mutex_);
    const auto first = std::partition(kept_.begin(), kept_.end(),
                                      [this](const Kept& one) { return !poll(*one.moment).ok(); });
    std::move(first, kept_.end(), std::back_inserter(passed));
    kept_.erase(first, kept_.end());
    kept_count_ = kept_.size();
  }
  for (Kept& one : passed) Device::let_go(std::move(one.memory));
}

Status CudaAccelerator::within(int device, const std::function<Status()>& action) {
  return on(device, [&](Device& one) { return one.within(action); });
}

Status CudaAccelerator::await(int device, const Moment& moment) {
  return on(device, [&](Device& one) { return one.wait_in(one.work(), moment); });
}

Status CudaAccelerator::copy(int device, Way way, void* to, const void* from, std::size_t bytes) {
  return on(device, [&](Device& one) { return one.copy(one.work(), way, to, from, bytes); });
}

Status CudaAccelerator::mark_work(int device, MomentPtr* made) {
  return on(device, [&](Device& one) { return one.mark(one.work(), made); });
}

}  // namespace hv::cuda
