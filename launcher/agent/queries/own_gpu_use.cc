// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/queries/own_gpu_use.h"

#include "launcher/agent/ending/descendant_hunt.h"
#include "launcher/facts/pid_namespace.h"

namespace hv::launcher {
namespace {

void leave_to_others(const std::set<std::uint32_t>& own, wire::GpuUse* use) {
  std::erase_if(use->processes,
                [&own](const wire::GpuProcess& process) { return own.count(process.pid) > 0; });
  use->busy_percent.reset();
  use->used_bytes.reset();
  for (const wire::GpuProcess& process : use->processes)
    if (process.memory_bytes > 0)
      use->used_bytes = use->used_bytes.value_or(0) + process.memory_bytes;
}

template <class Act>
void for_each_use(wire::Inventory* inventory, Act&& act) {
  for (wire::InventoryGpu& gpu : inventory->gpus) {
    act(&gpu.use);
    for (wire::MigDevice& part : gpu.mig) act(&part.use);
  }
}

}  // namespace

void leave_to_others(const std::set<std::uint32_t>& own, wire::Inventory* inventory) {
  for_each_use(inventory, [&own](wire::GpuUse* use) { leave_to_others(own, use); });
}

OwnGpuUse::OwnGpuUse() : knows_numbers_(is_in_first_pid_namespace()) {
  if (knows_numbers_) add_descendants();
}

void OwnGpuUse::add_descendants() {
  for (const ProcessEntry& process : own_descendants())
    own_.insert(static_cast<std::uint32_t>(process.pid));
}

void OwnGpuUse::leave_out_of(wire::Inventory* inventory) {
  if (!knows_numbers_) {  // the owner of a process is unknown
    for_each_use(inventory, [](wire::GpuUse* use) { *use = {}; });
    return;
  }
  add_descendants();
  leave_to_others(own_, inventory);
}

}  // namespace hv::launcher
