// A file descriptor with one owner that children forked by the program do not keep.
// SPDX-License-Identifier: Apache-2.0
//
// A DataLoader's workers would otherwise hold our connections open for seconds after this rank has
// died, and its peers would see no end. Any thread may call; nothing allocates in the child.
#pragma once

#include "src/base/unique_fd.h"

namespace hv {

// Owns a descriptor that forked children close at once.
class ForkGuardedFd {
 public:
  ForkGuardedFd() = default;
  explicit ForkGuardedFd(UniqueFd fd);
  ForkGuardedFd(ForkGuardedFd&& other) noexcept = default;
  ForkGuardedFd& operator=(ForkGuardedFd&& other) noexcept;
  ~ForkGuardedFd() { reset(); }

  int get() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }
  void reset();

 private:
  UniqueFd fd_;
};

}  // namespace hv
