// The file of horovodrun's --config-file: YAML with sections of settings. Pure but for
// read_horovod_config.
// SPDX-License-Identifier: Apache-2.0
//
//   params:
//     fusion_threshold_mb: 32
//   stall_check:
//     enabled: false
#pragma once

#include <string>
#include <vector>

namespace hv::launcher {

constexpr std::size_t kMostConfigBytes = 64 << 10;

struct ConfigSetting {
  std::string key;     // "params.fusion_threshold_mb"; hyphens have become underscores
  std::string value;   // of a scalar, as written
  std::string origin;  // "conf.yaml:2:3"
};

// In the order of the file; those without a value are left out. Throws Error(kUsage) with the place
// where it is no such file.
std::vector<ConfigSetting> parse_horovod_config(const std::string& text, const std::string& source);

// Throws Error(kUsage).
std::string read_horovod_config(const std::string& path);

}  // namespace hv::launcher
