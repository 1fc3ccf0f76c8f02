// The set of descriptors that forked children close, and its fork handler.
// SPDX-License-Identifier: Apache-2.0
#include "src/base/fork_guarded_fd.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "src/base/check.h"

namespace hv {
namespace {

// One bit per descriptor: readable in a forked child without any lock. Higher numbers are not
// guarded.
constexpr int kMaxGuarded = 1 << 16;
std::atomic<std::uint64_t> guarded[kMaxGuarded / 64];

void close_guarded_in_child() {
  for (std::size_t word = 0; word < kMaxGuarded / 64; ++word) {
    for (std::uint64_t bits = guarded[word].exchange(0); bits != 0; bits &= bits - 1)
      ::close(static_cast<int>(word * 64) + __builtin_ctzll(bits));
  }
}

void mark(int fd, bool on) {
  if (fd < 0 || fd >= kMaxGuarded) return;
  const std::uint64_t bit = 1ULL << (fd % 64);
  if (on) {
    guarded[fd / 64].fetch_or(bit);
  } else {
    guarded[fd / 64].fetch_and(~bit);
  }
}

}  // namespace

ForkGuardedFd::ForkGuardedFd(UniqueFd fd) : fd_(std::move(fd)) {
  static std::once_flag once;
  std::call_once(once, [] {
    HV_CHECK(::pthread_atfork(nullptr, nullptr, close_guarded_in_child) == 0, "fork handler");
  });
  mark(fd_.get(), true);
}

ForkGuardedFd& ForkGuardedFd::operator=(ForkGuardedFd&& other) noexcept {
  reset();
  fd_ = std::move(other.fd_);
  return *this;
}

void ForkGuardedFd::reset() {
  mark(fd_.get(), false);
  fd_.reset();
}

}  // namespace hv
