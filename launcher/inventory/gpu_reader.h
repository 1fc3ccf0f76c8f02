// One GPU, or MIG device, question by question.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/inventory/nvml_library.h"
#include "src/wire/inventory.h"

namespace hv::launcher {

// As the kernel writes it: NVML's own has eight digits of domain.
std::string address_of(const nvml::PciInfo& pci);

// What a driver lacks, or does not tell of this GPU, stays unknown. An answer that the GPU is lost,
// or has to be reset, counts from whichever question it comes.
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
  // Of a mode that is on or off.
  std::optional<bool> is_on(int (*function)(nvml::Device, int*)) {
    int mode = 0;
    return ask(function, &mode) ? std::optional(mode != 0) : std::nullopt;
  }
  std::optional<bool> has_ecc();
  std::string compute_mode();
  std::string slowdown();
  wire::PcieLink pcie();
  wire::GpuUse use();
  void read_health();
  std::vector<std::string> links();
  // Why it does not reach that one's memory; "": it does. none: not told.
  std::optional<std::string> refusal_to(nvml::Device other);

 private:
  std::optional<std::uint64_t> used_bytes();
  template <class Info>
  std::vector<wire::GpuProcess> processes(int (*function)(nvml::Device, unsigned*, Info*));
  std::string far_end(unsigned link);

  const Nvml& nvml_;
  nvml::Device device_;
  wire::GpuHealth& health_;
};

}  // namespace hv::launcher
