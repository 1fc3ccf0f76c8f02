// The words of the calling thread's last failure, and the way from a Status to the C API's number.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <new>

#include "runtime/include/hvrun/hvrun.h"
#include "src/base/error.h"
#include "src/base/status.h"

namespace hv::runtime {

// Keeps the words if it is an error; kOk and kInProgress leave what was there.
hvrun_status answer(const Status& status) noexcept;
const char* last_error() noexcept;

// Runs body, which returns a Status: nothing it throws crosses the C boundary.
template <class Body>
hvrun_status guarded(Body body) noexcept {
  try {
    return answer(body());
  } catch (const std::bad_alloc&) {
    return answer({StatusCode::kMemory, {}});
  } catch (const Error& error) {
    try {
      return answer({StatusCode::kContract, std::string(error.what()) + "; " + error.hint()});
    } catch (...) {
      return answer({StatusCode::kMemory, {}});
    }
  } catch (const std::exception& error) {
    try {
      return answer({StatusCode::kSystem, error.what()});
    } catch (...) {
      return answer({StatusCode::kMemory, {}});
    }
  } catch (...) {
    return answer({StatusCode::kSystem, {}});
  }
}

}  // namespace hv::runtime
