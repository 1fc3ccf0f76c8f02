// SPDX-License-Identifier: Apache-2.0
#include "launcher/facts/facts.h"

#include <sys/utsname.h>

#include "launcher/facts/cores.h"
#include "launcher/facts/gpus.h"
#include "launcher/facts/memory.h"
#include "launcher/facts/topology.h"
#include "src/base/core_mask.h"
#include "src/net/interfaces.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostVisibleBytes = 16 << 10;

}  // namespace

wire::Facts gather_facts(const Environment& own, const std::string& root) {
  wire::Facts facts;
  utsname names{};
  if (::uname(&names) == 0) {
    facts.hostname = names.nodename;
    facts.machine = names.machine;
  }
  facts.usable_cores = usable_cores(root);
  facts.gpus = read_gpus(root);
  for (const InterfaceAddress& address : useful_addresses()) {
    facts.addresses.push_back(address.ip);
    facts.interfaces.push_back(address.interface);
  }
  facts.memory_bytes = memory_bytes(root);
  facts.cores = read_cores(own_cores(), root);
  facts.rdma = read_rdma(root);
  facts.has_visible_devices = own.has("CUDA_VISIBLE_DEVICES");
  facts.visible_devices = own.get_or("CUDA_VISIBLE_DEVICES", "").substr(0, kMostVisibleBytes);
  facts.has_pci_order = own.get_or("CUDA_DEVICE_ORDER", "") == "PCI_BUS_ID";
  return facts;
}

}  // namespace hv::launcher
