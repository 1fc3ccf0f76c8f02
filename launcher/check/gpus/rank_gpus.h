// The GPUs that the plan gives to ranks, with what their hosts tell of them: a check of GPUs looks
// at these and no others. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "launcher/check/probe.h"
#include "launcher/plan/device_choice.h"
#include "src/wire/inventory.h"

namespace hv::launcher {

// A GPU, or a part of one. It points into the CheckInput.
struct RankGpu {
  std::size_t host = 0;  // in CheckInput::hosts
  int place = 0;         // among the host's devices
  int number = 0;        // of the GPU, as people count them: in PCI order
  GpuFacts facts{};
  std::vector<int> ranks{};
  const wire::Inventory* inventory = nullptr;  // null: the driver has told nothing
  const wire::InventoryGpu* told = nullptr;    // null: nothing of this GPU
  const wire::MigDevice* part = nullptr;       // of it, where the device is one

  std::string name() const;         // "GPU 6"
  const wire::GpuUse* use() const;  // null: not told
};

// By host, and of each in the order of its devices.
std::vector<RankGpu> gpus_of_ranks(const CheckInput& input);

// Those that can do no work and that a rank has, or would have otherwise; without a plan all that
// can do none. Nobody's ranks.
std::vector<RankGpu> missed_gpus(const CheckInput& input);

// Those whose ranks have GPUs.
std::vector<std::size_t> hosts_with_gpus(const CheckInput& input);

// What is found of GPUs, by host: "n[1-2]: GPU 3: 20 GiB in use; GPU 4: ...".
class GpuFindings {
 public:
  explicit GpuFindings(const CheckInput& input) : input_(input) {}
  void add(const RankGpu& gpu, const std::string& fact) {
    if (facts_.empty() || gpu.host < facts_.begin()->first) address_ = gpu.facts.pci_address;
    facts_[gpu.host].push_back(gpu.name() + " " + fact);
  }
  // Nothing where nothing was added. $GPU of the fix is the PCI address of the first one.
  void tell(const std::string& verdict, Judgement* judgement) const;

 private:
  const CheckInput& input_;
  std::map<std::size_t, std::vector<std::string>> facts_;
  std::string address_;
};

// "and" between the last two: "580.82 and 535.104".
std::string listed(const std::vector<std::string>& words);

}  // namespace hv::launcher
