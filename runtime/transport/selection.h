// Joins a job: decides which transport reaches which rank and connects them all.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/transport/fabric.h"

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
  std::vector<std::string>
      addresses;  // where other hosts reach this one; empty: all its interfaces
  // After a connection's end without a goodbye: how long the agent's word on it is waited for.
  std::chrono::milliseconds suspect_grace{1000};
  // Whether progress() takes the store's events and marks their ranks lost; false: its caller does.
  bool take_store_events = true;
};

// Every rank of the job calls it; blocks until all connections of this rank stand. The store must
// outlive the fabric. nullptr, and *status says why, when that fails.
std::unique_ptr<Fabric> connect_fabric(const RankIdentity& identity, Store& store,
                                       const FabricConfig& config, Status* status);

}  // namespace hv::runtime
