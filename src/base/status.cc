// SPDX-License-Identifier: Apache-2.0
#include "src/base/status.h"

#include <cerrno>

#include "src/base/text.h"

namespace hv {

Status system_status(const std::string& doing, int errno_value) {
  const char* hint = errno_value == EMFILE ? "; raise the limit on open files (ulimit -n)" : "";
  return {StatusCode::kSystem, doing + ": " + errno_text(errno_value) + hint};
}

const char* status_name(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInProgress:
      return "in progress";
    case StatusCode::kArgument:
      return "invalid argument";
    case StatusCode::kMismatch:
      return "mismatch between ranks";
    case StatusCode::kDuplicate:
      return "duplicate name";
    case StatusCode::kPeerLost:
      return "peer lost";
    case StatusCode::kShutdown:
      return "shut down";
    case StatusCode::kSystem:
      return "system error";
    case StatusCode::kMemory:
      return "out of memory";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kContract:
      return "bad rank environment";
    case StatusCode::kHandle:
      return "unknown handle";
    case StatusCode::kStalled:
      return "stalled";
  }
  return "unknown status";
}

}  // namespace hv
