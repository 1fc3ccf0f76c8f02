// SPDX-License-Identifier: Apache-2.0
#include "launcher/inventory/nvml_gpus.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "launcher/facts/mig.h"
#include "launcher/inventory/nvml_abi.h"
#include "src/base/symbol.h"

namespace hv::launcher {
namespace {

// No machine has as many; what a broken driver says is bounded by these.
constexpr unsigned kMostGpus = 256, kMostMigDevices = 64;

// NVML's functions. Old drivers lack some of the second group: what they would tell stays unknown.
struct Nvml {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*words_of)(int) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*by_index)(unsigned, nvml::Device*) = nullptr;
  int (*pci)(nvml::Device, nvml::PciInfo*) = nullptr;
  int (*uuid)(nvml::Device, char*, unsigned) = nullptr;

  int (*driver)(char*, unsigned) = nullptr;
  int (*by_address)(const char*, nvml::Device*) = nullptr;
  int (*name)(nvml::Device, char*, unsigned) = nullptr;
  int (*minor)(nvml::Device, unsigned*) = nullptr;
  int (*memory)(nvml::Device, nvml::Memory*) = nullptr;
  int (*ecc_errors)(nvml::Device, int, int, unsigned long long*) = nullptr;
  int (*pages_pending)(nvml::Device, int*) = nullptr;
  int (*remapped_rows)(nvml::Device, unsigned*, unsigned*, unsigned*, unsigned*) = nullptr;
  int (*link_state)(nvml::Device, unsigned, int*) = nullptr;
  int (*link_far_end)(nvml::Device, unsigned, nvml::PciInfo*) = nullptr;
  int (*link_type)(nvml::Device, unsigned, int*) = nullptr;
  int (*mig_mode)(nvml::Device, unsigned*, unsigned*) = nullptr;
  int (*mig_count)(nvml::Device, unsigned*) = nullptr;
  int (*mig_by_index)(nvml::Device, unsigned, nvml::Device*) = nullptr;
  int (*gpu_instance)(nvml::Device, unsigned*) = nullptr;
  int (*compute_instance)(nvml::Device, unsigned*) = nullptr;

  // The name of a function that it cannot do without, and that is not there; "": all are.
  std::string find(void* library);
};

std::string Nvml::find(void* library) {
  std::string missing;
  const auto need = [&](const char* symbol, auto* function) {
    if (!find_function(library, symbol, function) && missing.empty()) missing = symbol;
  };
  const auto want = [&](const char* symbol, auto* function) {
    (void)find_function(library, symbol, function);
  };
  need("nvmlInit_v2", &init);
  need("nvmlShutdown", &shutdown);
  need("nvmlErrorString", &words_of);
  need("nvmlDeviceGetCount_v2", &count);
  need("nvmlDeviceGetHandleByIndex_v2", &by_index);
  need("nvmlDeviceGetPciInfo_v3", &pci);
  need("nvmlDeviceGetUUID", &uuid);
  want("nvmlSystemGetDriverVersion", &driver);
  want("nvmlDeviceGetHandleByPciBusId_v2", &by_address);
  want("nvmlDeviceGetName", &name);
  want("nvmlDeviceGetMinorNumber", &minor);
  want("nvmlDeviceGetMemoryInfo", &memory);
  want("nvmlDeviceGetTotalEccErrors", &ecc_errors);
  want("nvmlDeviceGetRetiredPagesPendingStatus", &pages_pending);
  want("nvmlDeviceGetRemappedRows", &remapped_rows);
  want("nvmlDeviceGetNvLinkState", &link_state);
  want("nvmlDeviceGetNvLinkRemotePciInfo_v2", &link_far_end);
  want("nvmlDeviceGetNvLinkRemoteDeviceType", &link_type);
  want("nvmlDeviceGetMigMode", &mig_mode);
  want("nvmlDeviceGetMaxMigDeviceCount", &mig_count);
  want("nvmlDeviceGetMigDeviceHandleByIndex", &mig_by_index);
  want("nvmlDeviceGetGpuInstanceId", &gpu_instance);
  want("nvmlDeviceGetComputeInstanceId", &compute_instance);
  return missing;
}

// As the kernel writes it: NVML's own has eight digits of domain.
std::string address_of(const nvml::PciInfo& pci) {
  char text[48];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
  return text;
}

// One GPU, question by question. An answer that the GPU is lost, or has to be reset, counts from
// whichever question it comes.
class GpuReader {
 public:
  GpuReader(const Nvml& nvml, nvml::Device device, wire::GpuHealth* health)
      : nvml_(nvml), device_(device), health_(*health) {}

  // The function is there and has answered.
  template <class... Expected, class... Given>
  bool ask(int (*function)(nvml::Device, Expected...), Given... arguments) {
    return function != nullptr && note(function(device_, arguments...));
  }
  bool note(int result) {
    health_.is_lost |= result == nvml::kGpuIsLost;
    health_.needs_reset |= result == nvml::kResetRequired;
    return result == nvml::kSuccess;
  }
  std::string uuid() {
    char text[nvml::kUuidBytes] = "";
    return ask(nvml_.uuid, text, static_cast<unsigned>(sizeof text - 1)) ? text : "";
  }
  std::string name() {
    char text[nvml::kNameBytes] = "";
    return ask(nvml_.name, text, static_cast<unsigned>(sizeof text - 1)) ? text : "";
  }
  std::uint64_t memory() {
    nvml::Memory memory{};
    return ask(nvml_.memory, &memory) ? memory.total : 0;
  }
  std::uint32_t number(int (*function)(nvml::Device, unsigned*)) {
    unsigned value = 0;
    return ask(function, &value) ? value : 0;
  }
  std::uint64_t uncorrected(int since) {
    unsigned long long errors = 0;
    return ask(nvml_.ecc_errors, nvml::kUncorrected, since, &errors) ? errors : 0;
  }
  void read_health();
  std::vector<std::string> links();
  std::string far_end(unsigned link);

 private:
  const Nvml& nvml_;
  nvml::Device device_;
  wire::GpuHealth& health_;
};

void GpuReader::read_health() {
  health_.volatile_errors = uncorrected(nvml::kVolatile);
  health_.aggregate_errors = uncorrected(nvml::kAggregate);
  int pages = 0;
  if (ask(nvml_.pages_pending, &pages)) health_.is_pending |= pages != 0;
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  if (!ask(nvml_.remapped_rows, &corrected, &uncorrected, &pending, &failed)) return;
  health_.is_pending |= pending != 0;
  health_.remap_failed = failed != 0;
}

// Drivers that keep a switch to themselves tell no address of it: all such links are to "switch".
std::string GpuReader::far_end(unsigned link) {
  nvml::PciInfo pci{};
  int type = 0;
  const bool is_switch = ask(nvml_.link_type, link, &type) && type == nvml::kLinkToSwitch;
  const bool is_told = ask(nvml_.link_far_end, link, &pci) && pci.domain != ~0u;
  const bool is_null = pci.domain == 0 && pci.bus == 0 && pci.device == 0;
  if (is_told && !is_null) return address_of(pci);
  return is_switch ? "switch" : "";
}

std::vector<std::string> GpuReader::links() {
  std::set<std::string> ends;
  for (unsigned link = 0; link < nvml::kMostLinks; ++link) {
    int is_active = 0;
    if (!ask(nvml_.link_state, link, &is_active) || is_active == 0) continue;
    ends.insert(far_end(link));
  }
  ends.erase("");
  return {ends.begin(), ends.end()};
}

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
  unsigned mode = 0, next_mode = 0;
  gpu.has_mig_mode = reader.ask(nvml.mig_mode, &mode, &next_mode) && mode == 1;
  if (gpu.has_mig_mode) gpu.mig = read_mig(nvml, device, gpu, root);
  return gpu;
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
  for (unsigned i = 0; i < std::min(count, kMostGpus); ++i) {
    nvml::Device device = nullptr;
    if (nvml.by_index(i, &device) != nvml::kSuccess) continue;
    wire::InventoryGpu gpu = read_gpu(nvml, device, root);
    if (!gpu.pci_address.empty()) reading->gpus.push_back(std::move(gpu));
  }
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
  if (const int result = nvml.init(); result != nvml::kSuccess) {
    reading.problem = library + ": nvmlInit: " + nvml.words_of(result);
    return reading;
  }
  char version[nvml::kVersionBytes] = "";
  if (nvml.driver != nullptr && nvml.driver(version, sizeof version - 1) == nvml::kSuccess)
    reading.driver = version;
  read_listed(nvml, root, &reading);
  if (!reading.problem.empty()) reading.problem = library + ": " + reading.problem;
  read_unlisted(nvml, known, root, &reading);
  (void)nvml.shutdown();
  std::sort(reading.gpus.begin(), reading.gpus.end(),
            [](const wire::InventoryGpu& a, const wire::InventoryGpu& b) {
              return a.pci_address < b.pci_address;
            });
  return reading;
}

}  // namespace hv::launcher
