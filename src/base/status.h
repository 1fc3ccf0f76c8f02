// The outcome of something that can fail while ranks run: a code and, if it failed, words.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace hv {

// Numbers equal hvrun_status in hvrun.h (checked at compile time in runtime/api).
enum class StatusCode : std::uint32_t {
  kOk = 0,
  kInProgress = 1,
  kArgument = 2,
  kMismatch = 3,
  kDuplicate = 4,
  kPeerLost = 5,
  kShutdown = 6,
  kSystem = 7,
  kMemory = 8,
  kUnsupported = 9,
  kContract = 10,
  kHandle = 11,
  kStalled = 12,
};

struct [[nodiscard]] Status {
  StatusCode code = StatusCode::kOk;
  std::string message;

  bool ok() const { return code == StatusCode::kOk; }
  static Status success() { return {}; }
};

// "doing: reason of errno_value".
Status system_status(const std::string& doing, int errno_value);
const char* status_name(StatusCode code);

}  // namespace hv
