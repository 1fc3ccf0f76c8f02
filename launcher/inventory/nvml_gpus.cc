// SPDX-License-Identifier: Apache-2.0
#include "launcher/inventory/nvml_gpus.h"

#include <dlfcn.h>

#include <algorithm>

#include "launcher/facts/mig.h"
#include "launcher/facts/pid_namespace.h"
#include "launcher/facts/read_file.h"
#include "launcher/inventory/gpu_reader.h"
#include "launcher/inventory/nvml_library.h"
#include "src/base/clock.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// No machine has as many; what a broken driver says is bounded by these.
constexpr unsigned kMostGpus = 256, kMostMigDevices = 64, kMostPeers = 32;
constexpr std::size_t kMostName = 64;

std::vector<wire::MigDevice> read_mig(const Nvml& nvml, nvml::Device device,
                                      const wire::InventoryGpu& gpu, const std::string& root) {
  wire::GpuHealth ignored;
  GpuReader parent(nvml, device, &ignored);
  const unsigned most = std::min<unsigned>(parent.number(nvml.mig_count), kMostMigDevices);
  std::vector<wire::MigDevice> found;
  for (unsigned i = 0; i < most; ++i) {
    nvml::Device part = nullptr;
    if (!parent.ask(nvml.mig_by_index, i, &part)) continue;  // a place that is not taken
    GpuReader reader(nvml, part, &ignored);
    wire::MigDevice mig;
    mig.uuid = reader.uuid();
    mig.name = reader.name();
    mig.gpu_instance = reader.number(nvml.gpu_instance);
    mig.compute_instance = reader.number(nvml.compute_instance);
    mig.memory_bytes = reader.memory();
    mig.may_open = may_open_mig(gpu.minor, mig.gpu_instance, mig.compute_instance, root);
    mig.use = reader.use();
    found.push_back(std::move(mig));
  }
  return found;
}

wire::InventoryGpu read_gpu(const Nvml& nvml, nvml::Device device, const std::string& root) {
  wire::InventoryGpu gpu;
  GpuReader reader(nvml, device, &gpu.health);
  nvml::PciInfo pci{};
  if (reader.ask(nvml.pci, &pci)) gpu.pci_address = address_of(pci);
  gpu.uuid = reader.uuid();
  gpu.name = reader.name();
  gpu.minor = reader.number(nvml.minor);
  gpu.memory_bytes = reader.memory();
  reader.read_health();
  gpu.links = reader.links();
  gpu.use = reader.use();
  gpu.compute_mode = reader.compute_mode();
  gpu.has_persistence = reader.is_on(nvml.persistence);
  gpu.has_ecc = reader.has_ecc();
  gpu.pcie = reader.pcie();
  gpu.slowdown = reader.slowdown();
  unsigned mode = 0, next_mode = 0;
  gpu.has_mig_mode = reader.ask(nvml.mig_mode, &mode, &next_mode) && mode == 1;
  if (gpu.has_mig_mode) gpu.mig = read_mig(nvml, device, gpu, root);
  return gpu;
}

// The driver tells numbers of the host's first PID namespace, which are others in a container.
void name_processes(const std::string& root, std::vector<wire::GpuProcess>* processes) {
  if (!is_in_first_pid_namespace(root)) return;
  for (wire::GpuProcess& process : *processes) {
    const std::string file = root + "/proc/" + std::to_string(process.pid) + "/comm";
    process.name = trim(read_file(file, kMostName).value_or(""));
  }
}

void name_processes(const std::string& root, std::vector<wire::InventoryGpu>* gpus) {
  for (wire::InventoryGpu& gpu : *gpus) {
    name_processes(root, &gpu.use.processes);
    for (wire::MigDevice& mig : gpu.mig) name_processes(root, &mig.use.processes);
  }
}

// Of every two; MIG devices reach nobody.
void read_peers(const Nvml& nvml, const std::vector<nvml::Device>& devices,
                std::vector<wire::InventoryGpu>* gpus) {
  if (devices.size() > kMostPeers) return;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    wire::InventoryGpu& gpu = gpus->at(i);
    GpuReader reader(nvml, devices[i], &gpu.health);
    for (std::size_t j = 0; j < devices.size() && !gpu.has_mig_mode; ++j) {
      if (i == j || gpus->at(j).has_mig_mode) continue;
      if (auto refusal = reader.refusal_to(devices[j]))
        gpu.peers.push_back({gpus->at(j).pci_address, *refusal});
    }
  }
}

bool has_address(const std::vector<wire::InventoryGpu>& gpus, const std::string& address) {
  return std::any_of(gpus.begin(), gpus.end(), [&address](const wire::InventoryGpu& gpu) {
    return gpu.pci_address == address;
  });
}

// Of those that have an address.
void read_listed(const Nvml& nvml, const std::string& root, NvmlReading* reading) {
  unsigned count = 0;
  if (const int result = nvml.count(&count); result != nvml::kSuccess) {
    reading->problem = std::string("nvmlDeviceGetCount: ") + nvml.words_of(result);
    return;
  }
  std::vector<nvml::Device> devices;
  for (unsigned i = 0; i < std::min(count, kMostGpus); ++i) {
    nvml::Device device = nullptr;
    if (nvml.by_index(i, &device) != nvml::kSuccess) continue;
    wire::InventoryGpu gpu = read_gpu(nvml, device, root);
    if (gpu.pci_address.empty()) continue;
    reading->gpus.push_back(std::move(gpu));
    devices.push_back(device);
  }
  read_peers(nvml, devices, &reading->gpus);
}

void read_unlisted(const Nvml& nvml, const std::vector<wire::Gpu>& known, const std::string& root,
                   NvmlReading* reading) {
  for (const wire::Gpu& one : known) {
    if (nvml.by_address == nullptr || has_address(reading->gpus, one.pci_address)) continue;
    nvml::Device device = nullptr;
    const int result = nvml.by_address(one.pci_address.c_str(), &device);
    wire::InventoryGpu gpu;
    if (GpuReader(nvml, device, &gpu.health).note(result)) {
      gpu = read_gpu(nvml, device, root);
    } else if (!gpu.health.is_lost && !gpu.health.needs_reset) {
      continue;  // not this user's, say
    }
    gpu.pci_address = one.pci_address;
    if (gpu.name.empty()) gpu.name = one.model;
    if (gpu.uuid.empty()) gpu.uuid = one.uuid;
    gpu.minor = one.minor;
    reading->gpus.push_back(std::move(gpu));
  }
}

void read_versions(const Nvml& nvml, NvmlReading* reading) {
  char version[nvml::kVersionBytes] = "";
  if (nvml.driver != nullptr && nvml.driver(version, sizeof version - 1) == nvml::kSuccess)
    reading->driver = version;
  int cuda = 0;  // 12040 is 12.4
  if (nvml.cuda != nullptr && nvml.cuda(&cuda) == nvml::kSuccess)
    reading->cuda = std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10);
}

}  // namespace

NvmlReading read_nvml(const std::string& library, const std::vector<wire::Gpu>& known,
                      const std::string& root) {
  NvmlReading reading;
  // Never closed: the driver's library is not made for that, and the program ends soon.
  void* const opened = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    const char* const reason = ::dlerror();
    reading.problem = reason != nullptr ? reason : library + ": cannot be opened";
    return reading;
  }
  Nvml nvml;
  if (const std::string missing = nvml.find(opened); !missing.empty()) {
    reading.problem = library + ": it has no " + missing + ", so the driver is too old";
    return reading;
  }
  const TimePoint start = now();
  if (const int result = nvml.init(); result != nvml::kSuccess) {
    reading.problem = library + ": nvmlInit: " + nvml.words_of(result);
    return reading;
  }
  reading.start_s = seconds_since(start);
  read_versions(nvml, &reading);
  read_listed(nvml, root, &reading);
  if (!reading.problem.empty()) reading.problem = library + ": " + reading.problem;
  read_unlisted(nvml, known, root, &reading);
  name_processes(root, &reading.gpus);
  (void)nvml.shutdown();
  std::sort(reading.gpus.begin(), reading.gpus.end(),
            [](const wire::InventoryGpu& a, const wire::InventoryGpu& b) {
              return a.pci_address < b.pci_address;
            });
  return reading;
}

}  // namespace hv::launcher
