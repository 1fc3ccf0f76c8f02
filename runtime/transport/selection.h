// Joins a job: decides which transport reaches which rank and connects them all.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/transport/fabric.h"
#include "runtime/transport/step_report.h"
#include "runtime/transport/transport.h"
#include "src/net/interfaces.h"
#include "src/net/port_range.h"

namespace hv::runtime {

enum class LocalTransport {
  kShm,     // ranks are processes
  kInproc,  // ranks are threads of one process (tests): needs an InprocStore's job_id to be its own
};

struct FabricConfig {
  LocalTransport local = LocalTransport::kShm;
  int epoch = 0;
  std::chrono::milliseconds connect_timeout{30000};  // once all have met
  // How long ranks that have not come are waited for.
  std::chrono::milliseconds meeting_timeout{30000};
  std::size_t slot_bytes = 0;  // 0: the default; a multiple of 4096
  // Of each rank, for tensors that all ranks of its host reach; costs what is used of it. Where a
  // limit on sizes forbids it: none.
  std::size_t heap_bytes = 0;
  std::vector<std::string> addresses;  // where other hosts reach this one; empty: by its interfaces
  PortRange ports{};                   // that ranks of other hosts connect to
  InterfaceFilter interfaces{};        // of this host that they may use
  int streams = 1;  // connections between two ranks of different hosts; rank 0's counts
  // Silence after which a peer counts as lost; zero: never. Rank 0's counts.
  std::chrono::milliseconds peer_timeout{0};
  // After a connection's end without a goodbye: how long the agent's word on it is waited for.
  std::chrono::milliseconds suspect_grace{1000};
  // Whether progress() takes the store's events and marks their ranks lost; false: its caller does.
  bool take_store_events = true;
  std::shared_ptr<MovedBytes> moved{};  // where to count; nullptr: nobody wants to know
  // What progress() passes on; nullptr: nothing.
  std::shared_ptr<StepReport> step_report{};
  std::shared_ptr<StallReport> stall_report{};
};

// Every rank of the job calls it; blocks until all connections of this rank stand. The store must
// outlive the fabric. nullptr, and *status says why, when that fails.
std::unique_ptr<Fabric> connect_fabric(const RankIdentity& identity, Store& store,
                                       const FabricConfig& config, Status* status);

}  // namespace hv::runtime
