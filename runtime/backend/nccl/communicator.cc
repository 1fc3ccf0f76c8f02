// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/communicator.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "runtime/backend/nccl/ends.h"

namespace hv::nccl {
namespace {

constexpr std::chrono::seconds kUntilPeersEndIsTold{3};
constexpr std::chrono::milliseconds kBetweenLooks{1};
constexpr int kRevokeDefault = 0;

}  // namespace

Communicator::Communicator(std::shared_ptr<const Library> library,
                           std::shared_ptr<cuda::Device> device, int members, int self)
    : library_(std::move(library)), device_(std::move(device)), members_(members), self_(self) {}

Status Communicator::begin(std::shared_ptr<const Library> library,
                           std::shared_ptr<cuda::Device> device, const UniqueId& id, int members,
                           int self, std::unique_ptr<Communicator>* made) {
  std::unique_ptr<Communicator> one(
      new Communicator(std::move(library), std::move(device), members, self));
  Status status = one->device_->within([&] {
    Config config;
    config.blocking = 0;
    const int result = one->library_->call().init_rank(&one->comm_, members, id, self, &config);
    return one->library_->check(result, "make a communicator");
  });
  if (!status.ok()) return status;
  *made = std::move(one);
  return Status::success();
}

Status Communicator::poll(const char* doing) {
  return device_->within([&] {
    int state = kSuccess;
    const int result = library_->call().async_error(comm_, &state);
    if (Status asked = library_->check(result, "ask how far it is", comm_); !asked.ok())
      return asked;
    if (state == kInProgress) return Status{StatusCode::kInProgress, {}};
    if (state == kRemoteError || state == kSystemError) {
      first_trouble_ = std::min(first_trouble_, now());
      if (now() < first_trouble_ + kUntilPeersEndIsTold) return Status{StatusCode::kInProgress, {}};
    }
    return library_->check(state, doing, comm_);
  });
}

Communicator::~Communicator() { abort(); }

void Communicator::end() {
  Status status = device_->within([&] {
    return library_->check(library_->call().finalize(comm_), "end a communicator", comm_);
  });
  if (status.ok()) status = poll("end a communicator");
  while (status.code == StatusCode::kInProgress) {
    std::this_thread::sleep_for(kBetweenLooks);
    status = poll("end a communicator");
  }
  if (!status.ok()) {
    abort();
    return;
  }
  const Comm comm = std::exchange(comm_, nullptr);
  // Nothing could be done about what it answers, nor by the one who asked for the end.
  (void)device_->within(
      [&] { return library_->check(library_->call().destroy(comm), "free a communicator"); });
}

void Communicator::abort() {
  const Comm comm = std::exchange(comm_, nullptr);
  if (comm == nullptr) return;
  Ends::of_process().give_up([library = library_, device = device_, comm] {
    // What they answer helps nobody: the job has failed already, in words. Kernels end by the first
    // one, where there is that; the second waits for more.
    (void)device->within([&] {
      const LibraryFunctions& call = library->call();
      if (call.revoke != nullptr) (void)call.revoke(comm, kRevokeDefault);
      return library->check(call.abort(comm), "give up a communicator");
    });
  });
}

}  // namespace hv::nccl
