// SPDX-License-Identifier: Apache-2.0
#include "launcher/check/check_input.h"

#include <algorithm>

#include "src/base/text.h"

namespace hv::launcher {
namespace {

using Packages = std::vector<std::pair<std::string, std::string>>;

// 13 of "2.13.0+cu130". Versions that PyPI serves are without that: then by the packages of CUDA
// that PyTorch needs, nvidia-cuda-runtime-cu12, or nvidia-cuda-runtime 13.0.48.
std::optional<std::int64_t> cuda_major(const std::string& version, const Packages& packages) {
  const std::size_t local = version.find('+');
  if (local != std::string::npos) {
    const std::string build = version.substr(local + 1);
    if (build.rfind("cu", 0) != 0 || build.size() < 5) return std::nullopt;
    return parse_integer(build.substr(2, build.size() - 3));
  }
  const std::string runtime = "nvidia-cuda-runtime";
  for (const auto& [name, its] : packages) {
    if (name == runtime) return parse_integer(its.substr(0, its.find('.')));
    if (name.rfind(runtime + "-cu", 0) == 0)
      return parse_integer(std::string_view(name).substr(runtime.size() + 3));
  }
  return std::nullopt;
}

// Without a plan those of all programs.
std::vector<const wire::PythonFacts*> environments_of(const CheckInput& input, std::size_t host) {
  std::set<std::size_t> run;
  for (const PlannedRank& rank : input.plan.ranks)
    if (static_cast<std::size_t>(rank.host) == host)
      run.insert(static_cast<std::size_t>(rank.program));
  std::vector<const wire::PythonFacts*> environments;
  const auto& told = input.hosts[host].told;
  for (std::size_t i = 0; told && i < told->programs.size(); ++i)
    if (run.empty() || run.count(i) > 0)
      for (const wire::PythonFacts& python : told->programs[i].python)
        environments.push_back(&python);
  return environments;
}

}  // namespace

std::set<std::string> versions_of(const CheckInput& input, std::size_t host,
                                  const std::vector<std::string>& names) {
  std::set<std::string> versions;
  for (const wire::PythonFacts* python : environments_of(input, host)) {
    std::vector<std::string> its;
    for (const auto& [name, version] : python->packages)
      if (std::find(names.begin(), names.end(), name) != names.end() && !version.empty())
        its.push_back(printable(version));
    if (its.size() == 1) versions.insert(its[0]);
  }
  return versions;
}

std::optional<CudaOfTorch> cuda_of_torch(const CheckInput& input, std::size_t host) {
  std::optional<CudaOfTorch> newest;
  for (const wire::PythonFacts* python : environments_of(input, host))
    for (const auto& [name, version] : python->packages) {
      if (name != "torch") continue;
      const auto major = cuda_major(version, python->packages);
      if (major && (!newest || newest->major < *major))
        newest = CudaOfTorch{*major, printable(version)};
    }
  return newest;
}

}  // namespace hv::launcher
