// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/nccl/group.h"

#include <utility>

#include "tests/fakes/nccl/outside.h"

namespace hv::fake {
namespace {

// From 2.29 on NCCL makes one operation of a group's broadcasts with several roots; 2.32 gave wrong
// rows then, where ranks shared a GPU.
constexpr int kFusesBroadcastsFrom = 22900;

bool have_several_roots(const std::vector<Operation>& operations) {
  const Operation* first = nullptr;
  for (const Operation& one : operations) {
    if (one.call != Call::kBroadcast) continue;
    if (first == nullptr) first = &one;
    if (one.peer != first->peer) return true;
  }
  return false;
}

}  // namespace

Group& Group::of_thread() {
  thread_local Group group;
  return group;
}

Group::Share& Group::share_of(const std::shared_ptr<Communicator>& communicator) {
  for (Share& one : shares_)
    if (one.communicator == communicator) return one;
  return shares_.emplace_back(Share{communicator, {}, false});
}

int Group::refuse_call(int result) {
  if (depth_ > 0 && error_ == nccl::kSuccess) error_ = result;
  return result;
}

int Group::add(const std::shared_ptr<Communicator>& communicator, const Operation& operation) {
  begin();
  share_of(communicator).operations.push_back(operation);
  return end();
}

int Group::add_wait(const std::shared_ptr<Communicator>& communicator) {
  begin();
  share_of(communicator).waits = true;
  return end();
}

int Group::end() {
  if (depth_ == 0) return nccl::kInvalidUsage;
  if (--depth_ > 0) return nccl::kSuccess;
  const std::vector<Share> shares = std::exchange(shares_, {});
  int result = std::exchange(error_, nccl::kSuccess);
  if (result != nccl::kSuccess) return result;
  for (const Share& one : shares)
    if (version() >= kFusesBroadcastsFrom && have_several_roots(one.operations))
      return one.communicator->fail(nccl::kSystemError, "broadcasts of several roots as one");
  for (const Share& one : shares)
    if (!one.operations.empty() && one.communicator->launch(one.operations) == nccl::kInProgress)
      result = nccl::kInProgress;
  for (const Share& one : shares) {
    if (!one.waits) continue;
    const int state = one.communicator->is_blocking() ? one.communicator->await_idle()
                                                      : one.communicator->async_error();
    if (result == nccl::kSuccess || state != nccl::kInProgress)
      result = state == nccl::kSuccess ? result : state;
  }
  return result;
}

}  // namespace hv::fake
