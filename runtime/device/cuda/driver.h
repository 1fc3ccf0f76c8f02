// CUDA's driver, opened at run time: its functions, and words for what they answer.
// SPDX-License-Identifier: Apache-2.0
//
// Any thread may call. Nothing is cached but what never changes while the process lives.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/device/cuda/driver_abi.h"
#include "src/base/status.h"

namespace hv::cuda {

struct DriverFunctions {
#define HV_ONE(here, exported, parameters) int(*here) parameters = nullptr;
  HV_CUDA_FUNCTIONS(HV_ONE)
  HV_CUDA_NEWER_FUNCTIONS(HV_ONE)
#undef HV_ONE
};

class Driver {
 public:
  // The library of the system's, "libcuda.so.1" unless another is named. kUnsupported with the
  // reason and what to try: it is not there, lacks a function, or finds no GPU that it can use.
  static Status open(const std::string& library, std::shared_ptr<const Driver>* made);

  const DriverFunctions& call() const { return functions_; }
  int version() const { return version_; }  // of CUDA that it supports: 13000 for 13.0
  int devices() const { return devices_; }

  // doing: "copy a tensor to the host"; success for kSuccess, else kSystem with the driver's words.
  Status check(int result, std::string_view doing) const;
  std::string words_of(int result) const;

 private:
  Driver() = default;
  Status begin(const std::string& library);

  DriverFunctions functions_;
  int version_ = 0;
  int devices_ = 0;
};

}  // namespace hv::cuda
