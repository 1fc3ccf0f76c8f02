// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/nccl/group.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "tests/fakes/nccl/outside.h"

namespace hv::fake {
namespace {

// From 2.29 on NCCL makes one operation of a group's broadcasts with several roots; 2.32 gave wrong
// rows then, where ranks shared a GPU.
constexpr int kFusesBroadcastsFrom = 22900;
// Until then a group that goes on behind its call lies in the calling thread's own memory.
constexpr int kOwnGroupsFrom = 22700;

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

// Real ones have no words for it: another communicator's calls join what is left there, and NCCL's
// own thread goes on in memory that has gone with this one.
void Group::require_closed(const std::vector<Share>& but) {
  for (const auto& left : open_) {
    const auto open = left.lock();
    if (open == nullptr || !open->has_open_group()) continue;
    const bool is_in = std::any_of(but.begin(), but.end(),
                                   [&](const Share& one) { return one.communicator == open; });
    if (!is_in) refuse("the thread has a group of another communicator's that is not completed");
  }
}

void Group::leave_open(const std::shared_ptr<Communicator>& communicator) {
  if (version() >= kOwnGroupsFrom) return;
  communicator->open_group();
  open_.push_back(communicator);
}

Group::~Group() {
  if (::gettid() != ::getpid()) require_closed({});
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
  require_closed(shares);
  for (const Share& one : shares)
    if (version() >= kFusesBroadcastsFrom && have_several_roots(one.operations))
      return one.communicator->fail(nccl::kSystemError, "broadcasts of several roots as one");
  open_.clear();
  for (const Share& one : shares) {
    if (one.operations.empty()) continue;
    if (one.communicator->launch(one.operations) != nccl::kInProgress) continue;
    result = nccl::kInProgress;
    leave_open(one.communicator);
  }
  for (const Share& one : shares) {
    if (!one.waits) continue;
    if (!one.communicator->is_blocking()) leave_open(one.communicator);
    const int state = one.communicator->is_blocking() ? one.communicator->await_idle()
                                                      : one.communicator->async_error();
    if (result == nccl::kSuccess || state != nccl::kInProgress)
      result = state == nccl::kSuccess ? result : state;
  }
  return result;
}

}  // namespace hv::fake
