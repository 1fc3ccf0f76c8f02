// CUDA's driver, as the tests of this folder open it: the stand-in, or with HVRUN_TEST_MEMORY=gpu
// the real one. Where that is missing, the program ends with the reason and exit code 77.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "runtime/device/cuda/driver.h"
#include "src/base/symbol.h"
#include "tests/fakes/cuda/fake_cuda.h"
#include "tests/unit/paths.h"

namespace hv::cuda {

inline const std::string kStandIn = hv::tests::test_library("cuda/libcuda.so.1");

inline std::shared_ptr<const Driver> open_real_driver() {
  std::shared_ptr<const Driver> made;
  const Status status = Driver::open("libcuda.so.1", &made);
  if (status.ok() && made->devices() > 0) return made;
  std::printf("skipped: %s\n", status.ok() ? "no GPU" : status.message.c_str());
  std::fflush(stdout);
  ::_exit(77);
}

// With a context current in the thread that asks first, of the stand-in's second GPU or of the real
// first one. The variables are read once in a process.
inline const std::shared_ptr<const Driver>& driver_under_test() {
  static const std::shared_ptr<const Driver> one = [] {
    const char* const memory = std::getenv("HVRUN_TEST_MEMORY");
    const bool is_real = memory != nullptr && std::string(memory) == "gpu";
    ::setenv("HVRUN_FAKE_CUDA_DELAY_US", "2000", 1);
    std::shared_ptr<const Driver> made;
    if (is_real) made = open_real_driver();
    if (!is_real) REQUIRE(Driver::open(kStandIn, &made).ok());
    Context context = nullptr;
    REQUIRE(made->call().retain_context(&context, is_real ? 0 : 1) == kSuccess);
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
