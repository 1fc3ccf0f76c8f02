// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/backend_list.h"

#include "runtime/backend/gpu/gpu_backend.h"
#include "runtime/backend/native/native_backend.h"

#include "src/base/check.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::runtime {
namespace {

struct Entry {
  const char* name;
  Status (*make)(DataPlane* plane, const BackendSettings& settings, const JobExtent& job,
                 std::unique_ptr<Backend>* made);  // made stays nullptr: not usable here
};

Status read_algorithms(const BackendSettings& settings, const JobExtent& job,
                       std::vector<AlgorithmWish>* wishes) {
  std::string wrong;
  try {
    *wishes = parse_algorithms(settings.algorithms);
    wrong = impossible_wish(*wishes, job, settings.deterministic);
  } catch (const Error& error) {
    wrong = error.what() + (error.hint().empty() ? "" : "; " + error.hint());
  }
  if (wrong.empty()) return Status::success();
  return {StatusCode::kUnsupported, "choose algorithms: " + wrong};
}

Status make_native(DataPlane* plane, const BackendSettings& settings, const JobExtent& job,
                   std::unique_ptr<Backend>* made) {
  HV_CHECK(plane != nullptr, "the native backend moves data over the fabric");
  NativeSettings native;
  if (Status status = read_algorithms(settings, job, &native.wishes); !status.ok()) return status;
  if (!settings.kernels.empty()) native.kernels = find_kernels(settings.kernels);
  if (native.kernels == nullptr) {
    std::vector<std::string> usable;
    for (const Kernels* kernels : usable_kernels()) usable.emplace_back(kernels->name);
    return {StatusCode::kUnsupported,
            "choose kernels: HVRUN_KERNELS=" + printable(settings.kernels) +
                " does not run here; this processor runs: " + join(usable, ", ")};
  }
  *made = std::make_unique<NativeBackend>(*plane, std::move(native));
  return Status::success();
}

const std::vector<Entry>& entries() {
  static const std::vector<Entry> list = {{"native", make_native}};
  return list;
}

}  // namespace

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const Entry& entry : entries()) names.emplace_back(entry.name);
  return names;
}

Status make_backends(DataPlane* plane, const BackendSettings& settings, const JobExtent& job,
                     std::vector<std::unique_ptr<Backend>>* backends) {
  for (const Entry& entry : entries()) {
    if (!settings.wanted.empty() && settings.wanted != entry.name) continue;
    std::unique_ptr<Backend> backend;
    if (Status status = entry.make(plane, settings, job, &backend); !status.ok()) return status;
    if (backend) backends->push_back(std::move(backend));
  }
  if (!backends->empty()) {
    const bool uses_plugin = settings.wanted.empty();
    backends->push_back(
        std::make_unique<GpuBackend>(*backends->back(), plane->topology(), uses_plugin));
    return Status::success();
  }
  return {StatusCode::kUnsupported, "choose a backend: there is no '" + settings.wanted +
                                        "' here; this build has: " + join(backend_names(), ", ")};
}

}  // namespace hv::runtime
