// The streams of a lane. See lane.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/device/cuda/device.h"

namespace hv::nccl {

struct LaneStreams {
  cuda::Device::StreamPtr in;    // packs
  cuda::Device::StreamPtr work;  // NCCL's
  cuda::Device::StreamPtr out;   // unpacks

  static Status open(cuda::Device& device, LaneStreams* made);
};

}  // namespace hv::nccl
