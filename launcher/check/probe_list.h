// One line a probe.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launcher/check/probe.h"

namespace hv::launcher {

// Of what a connection sent, that had to be sent again: more is no healthy network.
constexpr double kMostResentShare = 0.03;

extern const Probe kReachProbe;      // reach.cc
extern const Probe kPlacementProbe;  // placement.cc
extern const Probe kClockProbe;      // clock.cc
extern const Probe kAddressProbe;    // addresses.cc
extern const Probe kNetworkProbe;    // network.cc
extern const Probe kWaysProbe;       // ways.cc
// What hosts tell of themselves.
extern const Probe kPortProbe;       // ports.cc
extern const Probe kNamesProbe;      // names.cc
extern const Probe kFolderProbe;     // folders.cc
extern const Probe kProgramProbe;    // program.cc
extern const Probe kPythonProbe;     // python.cc
extern const Probe kLimitProbe;      // limits.cc
extern const Probe kMemoryProbe;     // memory.cc
extern const Probe kLoadProbe;       // load.cc
extern const Probe kGpusProbe;       // gpus.cc
extern const Probe kGpuDriverProbe;  // gpu_driver.cc
extern const Probe kGpuHealthProbe;  // gpu_health.cc
extern const Probe kGpuUseProbe;     // gpu_use.cc
extern const Probe kGpuLinksProbe;   // gpu_links.cc
extern const Probe kNcclProbe;       // nccl.cc

}  // namespace hv::launcher
