// All live contexts of this process, so that a stale, foreign or forked hvrun_context* is an error,
// not a crash.
// SPDX-License-Identifier: Apache-2.0
//
// An hvrun_context* is a number in disguise and never dereferenced. Any thread may call. Never
// destroyed: threads may outlive main.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "runtime/api/context.h"
#include "runtime/include/hvrun/hvrun.h"

namespace hv::runtime {

class ContextRegistry {
 public:
  static ContextRegistry& instance();

  // Not kOk in a child forked from a process that has contexts: they are its parent's.
  Status check_process() const;
  // NULL: the default context. kShutdown when there is none such.
  Status find(const hvrun_context* context, std::shared_ptr<Context>* found) const;
  hvrun_context* add(std::shared_ptr<Context> context);
  // Takes it out: later calls find nothing. nullptr when there is none such.
  std::shared_ptr<Context> remove(const hvrun_context* context);

  // The default context is made and left by one thread at a time; others wait, and find it done.
  using Make = std::function<Status(std::shared_ptr<Context>*)>;
  // Does nothing where there is one.
  Status make_default(const Make& make);
  void leave_default();

 private:
  ContextRegistry() = default;

  std::mutex default_turn_;  // held while the default context is made or left; before mutex_
  mutable std::shared_mutex mutex_;  // guards contexts_, default_, next_
  std::map<const hvrun_context*, std::shared_ptr<Context>> contexts_;
  std::shared_ptr<Context> default_;
  std::uintptr_t next_ = 1;
};

}  // namespace hv::runtime
