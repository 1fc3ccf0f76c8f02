// SPDX-License-Identifier: Apache-2.0
#include "launcher/facts/mig.h"

#include <unistd.h>

#include <algorithm>

#include "launcher/facts/read_file.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

std::string instances_of(std::uint32_t minor, const std::string& root) {
  return root + "/proc/driver/nvidia/capabilities/gpu" + std::to_string(minor) + "/mig";
}

bool may_open(const std::string& capability, const std::string& root) {
  const std::string text = read_file(capability + "/access", 4096).value_or("");
  const auto node = parse_integer(value_after("DeviceFileMinor:", text).value_or(""));
  if (!node) return true;
  const std::string file = root + "/dev/nvidia-caps/nvidia-cap" + std::to_string(*node);
  return ::access(file.c_str(), R_OK) == 0;
}

}  // namespace

bool has_mig_instance(std::uint32_t minor, const std::string& root) {
  const std::vector<std::string> names = names_in(instances_of(minor, root));
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.rfind("gi", 0) == 0 && parse_integer(name.substr(2)).has_value();
  });
}

bool may_open_mig(std::uint32_t minor, std::uint32_t gpu_instance, std::uint32_t compute_instance,
                  const std::string& root) {
  const std::string outer = instances_of(minor, root) + "/gi" + std::to_string(gpu_instance);
  return may_open(outer, root) && may_open(outer + "/ci" + std::to_string(compute_instance), root);
}

}  // namespace hv::launcher
