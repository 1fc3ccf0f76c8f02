// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/driver.h"

#include <doctest/doctest.h>

using hv::Status;
using hv::StatusCode;
using hv::cuda::Driver;

namespace {

std::string why_not(const std::string& library) {
  std::shared_ptr<const Driver> driver;
  const Status status = Driver::open(library, &driver);
  CHECK(status.code == StatusCode::kUnsupported);
  CHECK(driver == nullptr);
  return status.message;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a driver that is not there is told with the loader's reason and what to do") {
  const std::string words = why_not("libcuda-of-nobody.so.1");
  CHECK(contains(words, "use GPUs by CUDA's driver: libcuda-of-nobody.so.1"));
  CHECK(contains(words, "No such file"));
  CHECK(contains(words, "try: install NVIDIA's driver"));
}

TEST_CASE("a library that lacks a function of CUDA's driver is named with it") {
  CHECK(contains(why_not("libm.so.6"), "libm.so.6: it has no cuInit; try: a driver of CUDA"));
}
