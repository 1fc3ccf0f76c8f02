// The stand-in for CUDA's driver, as the tests of this folder open it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <stdlib.h>

#include <memory>
#include <string>

#include "runtime/device/cuda/driver.h"
#include "src/base/symbol.h"
#include "tests/fakes/cuda/fake_cuda.h"

namespace hv::cuda {

inline const std::string kStandIn = std::string(HVRUN_TEST_LIBRARIES) + "/cuda/libcuda.so.1";

// With the second GPU's context current in the thread that asks first. The variables are read once
// in a process.
inline const std::shared_ptr<const Driver>& stand_in() {
  static const std::shared_ptr<const Driver> one = [] {
    ::setenv("HVRUN_FAKE_CUDA_DELAY_US", "2000", 1);
    std::shared_ptr<const Driver> made;
    REQUIRE(Driver::open(kStandIn, &made).ok());
    Context context = nullptr;
    REQUIRE(made->call().retain_context(&context, 1) == kSuccess);
    REQUIRE(made->call().push_context(context) == kSuccess);
    return made;
  }();
  return one;
}

// A function of fake_cuda.h.
template <class Function>
Function* asked(const char* name) {
  Function* found = nullptr;
  REQUIRE(hv::find_function(::dlopen(kStandIn.c_str(), RTLD_NOW), name, &found));
  return found;
}

inline void tell_faults(const char* list) {
  asked<decltype(fake_cuda_faults)>("fake_cuda_faults")(list);
}

}  // namespace hv::cuda
