// One text per thread.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/last_error.h"

#include <string>

namespace hv::runtime {
namespace {

static_assert(static_cast<int>(StatusCode::kOk) == HVRUN_OK);
static_assert(static_cast<int>(StatusCode::kInProgress) == HVRUN_IN_PROGRESS);
static_assert(static_cast<int>(StatusCode::kArgument) == HVRUN_ERROR_ARGUMENT);
static_assert(static_cast<int>(StatusCode::kMismatch) == HVRUN_ERROR_MISMATCH);
static_assert(static_cast<int>(StatusCode::kDuplicate) == HVRUN_ERROR_DUPLICATE);
static_assert(static_cast<int>(StatusCode::kPeerLost) == HVRUN_ERROR_PEER_LOST);
static_assert(static_cast<int>(StatusCode::kShutdown) == HVRUN_ERROR_SHUTDOWN);
static_assert(static_cast<int>(StatusCode::kSystem) == HVRUN_ERROR_SYSTEM);
static_assert(static_cast<int>(StatusCode::kMemory) == HVRUN_ERROR_MEMORY);
static_assert(static_cast<int>(StatusCode::kUnsupported) == HVRUN_ERROR_UNSUPPORTED);
static_assert(static_cast<int>(StatusCode::kContract) == HVRUN_ERROR_CONTRACT);
static_assert(static_cast<int>(StatusCode::kHandle) == HVRUN_ERROR_HANDLE);
static_assert(static_cast<int>(StatusCode::kStalled) == HVRUN_ERROR_STALLED);

std::string& text() {
  thread_local std::string words;
  return words;
}

}  // namespace

hvrun_status answer(const Status& status) noexcept {
  const auto number = static_cast<hvrun_status>(status.code);
  if (number == HVRUN_OK || number == HVRUN_IN_PROGRESS) return number;
  try {
    text() = status.message.empty() ? "out of memory, or an unknown failure" : status.message;
  } catch (...) {
    text().clear();  // no memory for words; the number tells
  }
  return number;
}

const char* last_error() noexcept { return text().c_str(); }

}  // namespace hv::runtime
