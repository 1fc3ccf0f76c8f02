// SPDX-License-Identifier: Apache-2.0
#include "launcher/check/failure_signs.h"

#include <algorithm>
#include <csignal>
#include <string_view>
#include <vector>

#include "src/base/text.h"

namespace hv::launcher {
namespace {

using Names = std::vector<std::string>;

struct FailureSign {
  std::string_view words;  // in small letters
  Names probes;
};

// Words of the kernel, the C library, the dynamic loader, Python, CUDA and NCCL, and of hvrun's own
// errors.
const std::vector<FailureSign>& signs_in_words() {
  static const Names gpu{"gpus", "gpu-driver", "gpu-health", "gpu-use", "nccl"};
  static const std::vector<FailureSign> signs{
      {"error while loading shared libraries", {"program"}},
      {"cannot open shared object file", {"program", "python"}},
      {"symbol lookup error", {"program", "python"}},
      {"undefined symbol", {"program", "python"}},
      {"version `glibc", {"program"}},
      {"exec format error", {"program"}},
      {"not found in path", {"program"}},
      {"command not found", {"program"}},
      {"importerror", {"python"}},
      {"modulenotfounderror", {"python"}},
      {"no such file or directory", {"folders", "program"}},
      {"permission denied", {"folders", "program"}},
      {"read-only file system", {"folders"}},
      {"no space left on device", {"folders", "memory"}},
      {"disk quota exceeded", {"folders"}},
      {"stale file handle", {"folders"}},
      {"bus error", {"memory"}},
      {"/dev/shm", {"memory"}},
      {"shared memory", {"memory"}},
      {"cannot allocate memory", {"memory", "limits"}},
      {"memoryerror", {"memory", "limits"}},
      {"bad_alloc", {"memory", "limits"}},
      {"defaultcpuallocator", {"memory", "limits"}},
      {"too many open files", {"limits"}},
      {"resource temporarily unavailable", {"limits"}},
      {"can't start new thread", {"limits"}},
      {"memlock", {"limits"}},
      {"ibv_", {"limits", "network"}},
      {"address already in use", {"ports"}},
      {"no port of", {"ports"}},
      {"network is unreachable", {"network"}},
      {"no route to host", {"network"}},
      {"cuda error", gpu},
      {"cuda_error", gpu},
      {"cudaerror", gpu},
      {"cuda driver", gpu},
      {"cuda's driver", gpu},
      {"cuda-capable", gpu},
      {"cuda initialization", gpu},
      {"cuda out of memory", gpu},
      {"cuda failure", gpu},
      {"libcuda", gpu},
      {"nvidia driver", gpu},
      {"cudnn_status", gpu},
      {"cublas_status", gpu},
      {"nccl error", gpu},
      {"use nccl: ", gpu},
      {"nccl 2.", gpu},
      {"nccl failure", gpu},
      {"nccl warn", gpu},
      {"libnccl", gpu},
      {"nvml", gpu}};
  return signs;
}

constexpr int kNotExecutable = 126, kNotLoaded = 127;  // as shells and loaders leave

Names probes_of_end(const ExitStatus& end) {
  if (!end.by_signal)
    return end.code == kNotExecutable || end.code == kNotLoaded ? Names{"program"} : Names{};
  switch (end.code) {
    case SIGBUS:
      return {"memory"};
    case SIGKILL:
      return {"memory", "limits"};
    case SIGSEGV:
    case SIGILL:
      return {"program", "python"};
    default:
      return {};
  }
}

}  // namespace

FittingProbes fitting_probes(const FailureSigns& signs) {
  FittingProbes fitting;
  const auto add = [&fitting](const Names& names) {
    fitting.names.insert(names.begin(), names.end());
  };
  const std::string words = lower(signs.words);
  for (const FailureSign& sign : signs_in_words())
    if (words.find(sign.words) != std::string::npos) add(sign.probes);
  if (signs.end) add(probes_of_end(*signs.end));
  fitting.asks_drivers = fitting.names.count("gpus") > 0;
  fitting.asks_hosts =
      std::any_of(fitting.names.begin(), fitting.names.end(),
                  [](const std::string& name) { return name.rfind("gpu", 0) != 0; });
  return fitting;
}

}  // namespace hv::launcher
