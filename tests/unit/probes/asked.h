// Runs a probe in this process, on programs in a test's directory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "launcher/probes/host_probe.h"
#include "tests/unit/temporary_folder.h"

namespace hv::tests {

inline void write_file(const std::string& path, const std::string& text, mode_t mode = 0644) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
  ::chmod(path.c_str(), mode);
}

inline Environment usual_environment() {
  Environment environment;
  environment.set("PATH", "/usr/local/bin:/usr/bin:/bin");
  return environment;
}

inline wire::CheckReply asked(const std::string& probe, const wire::CheckRequest& request,
                              const Environment& environment = usual_environment()) {
  wire::CheckReply reply;
  for (const launcher::HostProbe& each : launcher::host_probes())
    if (each.name == probe) each.inspect(request, environment, &reply);
  return reply;
}

inline wire::CheckRequest request_for(std::vector<std::string> argv, const std::string& directory) {
  wire::CheckRequest request;
  request.timeout_s = 60;
  request.programs.push_back({std::move(argv), directory, {}});
  return request;
}

}  // namespace hv::tests
