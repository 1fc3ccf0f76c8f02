// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/own_gpu_use.h"

#include <algorithm>

#include "launcher/agent/descendant_hunt.h"

namespace hv::launcher {
namespace {

void leave_out_of(const std::set<std::uint32_t>& pids, wire::GpuUse* use) {
  const auto is_own = [&pids](const wire::GpuProcess& one) { return pids.count(one.pid) > 0; };
  for (const wire::GpuProcess& one : use->processes) {
    if (!is_own(one)) continue;
    use->busy_percent.reset();
    if (one.memory_bytes == 0)
      use->used_bytes.reset();
    else if (use->used_bytes)
      *use->used_bytes -= std::min(*use->used_bytes, one.memory_bytes);
  }
  std::erase_if(use->processes, is_own);
}

}  // namespace

void leave_out(const std::set<std::uint32_t>& pids, wire::Inventory* inventory) {
  for (wire::InventoryGpu& gpu : inventory->gpus) {
    leave_out_of(pids, &gpu.use);
    for (wire::MigDevice& part : gpu.mig) leave_out_of(pids, &part.use);
  }
}

void leave_out_descendants(wire::Inventory* inventory) {
  const auto is_used = [](const wire::InventoryGpu& gpu) {
    return !gpu.use.processes.empty() ||
           std::any_of(gpu.mig.begin(), gpu.mig.end(),
                       [](const wire::MigDevice& part) { return !part.use.processes.empty(); });
  };
  if (std::none_of(inventory->gpus.begin(), inventory->gpus.end(), is_used)) return;
  std::set<std::uint32_t> pids;
  for (const ProcessEntry& process : own_descendants())
    pids.insert(static_cast<std::uint32_t>(process.pid));
  leave_out(pids, inventory);
}

}  // namespace hv::launcher
