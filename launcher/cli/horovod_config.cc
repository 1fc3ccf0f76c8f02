// SPDX-License-Identifier: Apache-2.0
#include "launcher/cli/horovod_config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "src/base/bounded_file.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr const char* kForm =
    "expected sections with settings, such as 'params:' and below it '  fusion_threshold_mb: 32'";
constexpr std::size_t kMostSettings = 1000;

std::string place_of(const std::string& source, const YAML::Mark& mark) {
  if (mark.is_null()) return source;
  return source + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
}

[[noreturn]] void refuse(const std::string& place, const std::string& what) {
  throw Error(ErrorKind::kUsage, place + ": " + what, kForm);
}

std::string key_of(const YAML::Node& node, const std::string& source) {
  if (!node.IsScalar()) refuse(place_of(source, node.Mark()), "this is no name of a setting");
  std::string key = node.Scalar();
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

void add_setting(const std::string& key, const YAML::Node& value, const std::string& source,
                 std::vector<ConfigSetting>* settings) {
  const std::string place = place_of(source, value.Mark());
  if (value.IsNull()) return;
  if (!value.IsScalar()) refuse(place, printable(key) + " has no single value");
  if (settings->size() == kMostSettings) refuse(place, "too many settings");
  if (value.Scalar().find('\0') != std::string::npos)
    refuse(place, printable(key) + " has a byte 0 in its value");
  settings->push_back({key, value.Scalar(), place});
}

}  // namespace

std::vector<ConfigSetting> parse_horovod_config(const std::string& text,
                                                const std::string& source) {
  if (text.size() > kMostConfigBytes)
    refuse(source, "more than " + format_bytes(kMostConfigBytes) + " are no such file");
  std::vector<ConfigSetting> settings;
  try {
    const YAML::Node file = YAML::Load(text);
    if (file.IsNull()) return settings;
    if (!file.IsMap()) refuse(place_of(source, file.Mark()), "there are no sections");
    for (const auto& section : file) {
      const std::string name = key_of(section.first, source);
      if (!section.second.IsMap()) {
        add_setting(name, section.second, source, &settings);
        continue;
      }
      for (const auto& entry : section.second)
        add_setting(name + "." + key_of(entry.first, source), entry.second, source, &settings);
    }
  } catch (const YAML::Exception& error) {
    refuse(place_of(source, error.mark), "this is no YAML: " + printable(error.msg));
  }
  return settings;
}

std::string read_horovod_config(const std::string& path) {
  return read_bounded_file(path, kMostConfigBytes, "--config-file",
                           "name a file in YAML as horovodrun takes it");
}

}  // namespace hv::launcher
