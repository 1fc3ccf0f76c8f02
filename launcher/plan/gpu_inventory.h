// Merges the facts that hvrun-inventory and /proc report about a host's GPUs. Pure.
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

// The plan needs facts about this host's GPUs that /proc lacks: UUIDs, MIG devices, or the GPUs of
// an inherited CUDA_VISIBLE_DEVICES. Only then, because a request starts the driver, which takes a
// second or more. entry: index into the list.
bool needs_inventory(const JobSpec& spec, const HostList& list, std::size_t entry,
                     const wire::Facts& reported);

struct GpusOfHost {
  std::vector<GpuFacts> gpus;  // the visible ones, in their order
  std::vector<std::string> warnings{};
};

// The GPUs whose device node opens, matched by PCI address. MIG devices replace a GPU in MIG mode;
// then an inherited CUDA_VISIBLE_DEVICES applies. inventory: nullptr where it was not requested, or
// failed.
GpusOfHost gpus_of(const wire::Facts& reported, const wire::Inventory* inventory);

// The reply's inventory, if it can be used for GPUs; nullptr: it lacks them because of a problem.
const wire::Inventory* inventory_of_gpus(const wire::InventoryReply& reply);
// Why a reply lacks GPUs, some or all; "": it lacks none.
const std::string& problem_of(const wire::InventoryReply& reply);

// Why a GPU is unusable; "": it is usable.
std::string fault_of(const wire::GpuHealth& health);

// A number for each GPU, equal for GPUs that NVLinks connect, directly or by a switch; -1: it has
// no NVLink.
std::vector<int> islands_of(const std::vector<wire::InventoryGpu>& gpus);

}  // namespace hv::launcher
