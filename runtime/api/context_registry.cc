// The table of contexts, and the mark that a fork leaves.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/context_registry.h"

#include <pthread.h>

#include <atomic>
#include <utility>

namespace hv::runtime {
namespace {

// Contexts that exist, and turns at the default one; read in a forked child, which may lock
// nothing: what another thread had locked is never unlocked there.
std::atomic<int> live_contexts{0};
std::atomic<bool> is_forked_child{false};

void mark_child() {
  if (live_contexts.load() > 0) is_forked_child = true;
}

// A thread's turn at making or leaving the default context.
class DefaultTurn {
 public:
  explicit DefaultTurn(std::mutex& mutex) : lock_((++live_contexts, mutex)) {}
  ~DefaultTurn() { --live_contexts; }

 private:
  const std::lock_guard<std::mutex> lock_;
};

}  // namespace

ContextRegistry& ContextRegistry::instance() {
  static ContextRegistry* const registry = [] {
    ::pthread_atfork(nullptr, nullptr, mark_child);
    return new ContextRegistry;
  }();
  return *registry;
}

Status ContextRegistry::check_process() const {
  if (!is_forked_child.load(std::memory_order_relaxed)) return Status::success();
  return {StatusCode::kContract,
          "this process was forked from a rank: only the process that called hvrun_init may use "
          "libhvrun; leave it to "
          "that one, or start the child with exec"};
}

Status ContextRegistry::find(const hvrun_context* context, std::shared_ptr<Context>* found) const {
  if (Status status = check_process(); !status.ok()) return status;
  const std::shared_lock lock(mutex_);
  if (context == nullptr) {
    *found = default_;
    if (*found) return Status::success();
    return {StatusCode::kShutdown,
            "there is no default context: call hvrun_init(NULL, NULL) first, and nothing after "
            "hvrun_shutdown"};
  }
  const auto known = contexts_.find(context);
  if (known == contexts_.end())
    return {StatusCode::kShutdown, "this context is shut down, or never was one"};
  *found = known->second;
  return Status::success();
}

hvrun_context* ContextRegistry::add(std::shared_ptr<Context> context) {
  const std::unique_lock lock(mutex_);
  // Numbers stay odd and far from any address that a caller could mistake for its own.
  auto* const number = reinterpret_cast<hvrun_context*>(next_++ * 2 + 1);
  contexts_[number] = std::move(context);
  ++live_contexts;
  return number;
}

Status ContextRegistry::make_default(const Make& make) {
  const DefaultTurn turn(default_turn_);
  {
    const std::shared_lock lock(mutex_);
    if (default_) return Status::success();
  }
  std::shared_ptr<Context> made;
  if (Status status = make(&made); !status.ok()) return status;
  const std::unique_lock lock(mutex_);
  default_ = std::move(made);
  ++live_contexts;
  return Status::success();
}

void ContextRegistry::leave_default() {
  const DefaultTurn turn(default_turn_);
  if (const std::shared_ptr<Context> left = remove(nullptr)) left->shutdown();
}

std::shared_ptr<Context> ContextRegistry::remove(const hvrun_context* context) {
  const std::unique_lock lock(mutex_);
  std::shared_ptr<Context> removed;
  if (context == nullptr) {
    removed = std::exchange(default_, nullptr);
  } else if (const auto known = contexts_.find(context); known != contexts_.end()) {
    removed = std::move(known->second);
    contexts_.erase(known);
  }
  if (removed) --live_contexts;
  return removed;
}

}  // namespace hv::runtime
