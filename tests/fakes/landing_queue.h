// A queue of bytes whose reader may name the memory where they belong: then they lie there as soon
// as they are written, as early as any connection can bring them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "src/base/check.h"

namespace hv::runtime {

class LandingQueue {
 public:
  std::size_t size() const { return bytes_.size(); }  // of what did not land

  void push(const void* bytes, std::size_t size) {
    const auto* from = static_cast<const std::byte*>(bytes);
    const std::size_t part = std::min(size, landing_.size() - landed_);
    std::copy_n(from, part, landing_.data() + landed_);
    landed_ += part;
    bytes_.insert(bytes_.end(), from + part, from + size);
  }

  // As Channel's readable(), consume(), receive() and withdraw().
  std::span<const std::byte> waiting() const {
    HV_CHECK(landing_.empty(), "bytes are read in one way at a time");
    return bytes_;
  }
  void pop(std::size_t size) {
    HV_CHECK(landing_.empty(), "bytes are read in one way at a time");
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(size));
  }
  std::size_t receive(std::byte* into, std::size_t size) {
    if (!landing_.empty()) {
      HV_CHECK(into == landing_.data() && size == landing_.size(), "receive() goes on");
      landing_ = landing_.subspan(landed_);
      return std::exchange(landed_, 0);
    }
    const std::size_t taken = std::min(size, bytes_.size());
    std::copy_n(bytes_.begin(), taken, into);
    pop(taken);
    if (taken < size) landing_ = {into + taken, size - taken};
    return taken;
  }
  bool has_landing() const { return !landing_.empty(); }
  void withdraw() {
    const auto landed = std::exchange(landing_, {}).first(std::exchange(landed_, 0));
    bytes_.insert(bytes_.begin(), landed.begin(), landed.end());
  }

 private:
  std::vector<std::byte> bytes_;
  std::span<std::byte> landing_{};
  std::size_t landed_ = 0;
};

}  // namespace hv::runtime
