// SPDX-License-Identifier: Apache-2.0
#include "launcher/facts/gpus.h"

#include <unistd.h>

#include <algorithm>

#include "launcher/facts/mig.h"
#include "launcher/facts/read_file.h"
#include "launcher/facts/topology.h"
#include "src/base/text.h"

namespace hv::launcher {

std::optional<wire::Gpu> parse_gpu(const std::string& pci_address, const std::string& information) {
  const auto minor = parse_integer(value_after("Device Minor:", information).value_or(""));
  if (!minor || *minor < 0 || *minor > 1 << 20) return std::nullopt;
  wire::Gpu gpu;
  gpu.pci_address = pci_address;
  gpu.model = value_after("Model:", information).value_or("unknown");
  // Question marks until the driver has initialised the GPU.
  const std::string uuid = value_after("GPU UUID:", information).value_or("");
  if (uuid.find('?') == std::string::npos) gpu.uuid = uuid;
  gpu.minor = static_cast<std::uint32_t>(*minor);
  return gpu;
}

std::vector<wire::Gpu> read_gpus(const std::string& root) {
  const std::string folder = root + "/proc/driver/nvidia/gpus";
  std::vector<wire::Gpu> gpus;
  for (const std::string& address : names_in(folder)) {
    const auto gpu =
        parse_gpu(address, read_file(folder + "/" + address + "/information").value_or(""));
    if (!gpu) continue;
    // Asking (the kernel consults the device cgroup as well) costs nothing, whereas opening a
    // sleeping GPU's node makes the driver initialise it: a second or more.
    const std::string node = root + "/dev/nvidia" + std::to_string(gpu->minor);
    if (::access(node.c_str(), R_OK | W_OK) != 0) continue;
    const PciPlace place = pci_place(root + "/sys/bus/pci/devices/" + address);
    gpus.push_back(*gpu);
    gpus.back().node = place.node;
    gpus.back().pci_path = place.path;
    gpus.back().has_mig = has_mig_instance(gpu->minor, root);
  }
  std::sort(gpus.begin(), gpus.end(),
            [](const wire::Gpu& a, const wire::Gpu& b) { return a.pci_address < b.pci_address; });
  return gpus;
}

}  // namespace hv::launcher
