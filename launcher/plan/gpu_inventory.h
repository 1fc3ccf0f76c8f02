// What hvrun-inventory tells joins what /proc tells of a host's GPUs. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "launcher/allocation/host_list.h"
#include "launcher/plan/device_choice.h"
#include "launcher/plan/job_spec.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// The plan needs more of this host's GPUs than /proc tells: UUIDs that are to be written or looked
// up and are not known yet, MIG devices, or an inherited CUDA_VISIBLE_DEVICES. Asking starts the
// driver, a second and more: so only then. entry: of the list.
bool needs_inventory(const JobSpec& spec, const HostList& list, std::size_t entry,
                     const wire::Facts& told);

struct GpusOfHost {
  std::vector<GpuFacts> gpus;  // that are visible, in their order
  std::vector<std::string> warnings{};
};

// GPUs of which the node opens, as both tell of them, matched by PCI address: one in MIG mode is
// replaced by its devices. Then an inherited CUDA_VISIBLE_DEVICES counts. inventory: null where it
// was not asked, or told nothing.
GpusOfHost gpus_of(const wire::Facts& told, const wire::Inventory* inventory);

// What an answer tells of GPUs; null: nothing.
const wire::Inventory* told_of_gpus(const wire::InventoryReply& reply);
// Why it tells nothing, or not all; "": it does.
const std::string& problem_of(const wire::InventoryReply& reply);

// Why a GPU can do no work; "": it can.
std::string fault_of(const wire::GpuHealth& health);

// A number for each GPU, equal for those that NVLinks join, directly or by a switch; -1: it has
// none.
std::vector<int> islands_of(const std::vector<wire::InventoryGpu>& gpus);

}  // namespace hv::launcher
