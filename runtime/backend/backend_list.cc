// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/backend_list.h"

#include <utility>

#include "runtime/backend/carrier_order.h"
#include "runtime/backend/gpu/gpu_backend.h"
#include "runtime/backend/mpi/mpi_choice.h"
#include "runtime/backend/native/native_backend.h"
#include "src/base/check.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "src/contract/backend_words.h"

namespace hv::runtime {
namespace {

constexpr const char* kAllNames = "nccl, mpi, native";

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

std::unique_ptr<Backend> make_mpi(const BackendSettings& settings, const std::vector<int>& members,
                                  int self, PairCarrier** pairs) {
  HV_CHECK(settings.mpi != nullptr, "the ranks have met in MPI before");
  const MpiPlaces& places = *settings.mpi;
  std::vector<int> world_ranks;
  for (const int rank : members)
    world_ranks.push_back(places.world_ranks.at(static_cast<std::size_t>(rank)));
  return places.plugin->make(std::move(world_ranks), self, places.is_cuda_aware, settings.ring,
                             pairs);
}

std::string mpi_in_words(const MpiPlaces& places) {
  return "mpi (" + places.library + (places.is_cuda_aware ? ", aware of CUDA)" : ")");
}

Status unknown(const std::string& name) {
  return {StatusCode::kUnsupported, "choose a backend: there is no '" + printable(name) +
                                        "'; HVRUN_BACKEND is a list of " + kAllNames};
}

}  // namespace

std::string carriers_in_words(const BackendSettings& settings) {
  const std::vector<std::string> names = backend_words(settings.wanted);
  const CarrierOrder order = carrier_order(names);
  std::vector<std::string> of_host, of_gpus;
  for (const std::string& name : order.of_host)
    of_host.push_back(name == "mpi" && settings.mpi != nullptr ? mpi_in_words(*settings.mpi)
                                                               : name);
  const bool takes_addresses = settings.mpi != nullptr && settings.mpi->is_cuda_aware;
  for (const GpuWay way : order.of_gpus) {
    if (way == GpuWay::kNccl) of_gpus.emplace_back("nccl");
    if (way == GpuWay::kAddresses && takes_addresses)
      of_gpus.emplace_back("mpi by their addresses");
    if (way == GpuWay::kStaged) of_gpus.emplace_back("through the host's");
  }
  return "on the host's memory " + (of_host.empty() ? "nobody" : join(of_host, ", ")) +
         "; on GPUs' memory " + join(of_gpus, ", else ") +
         (is_nccl_idle(names) ? ", and never nccl, for native comes before it" : "");
}

// The native one is there whoever carries tensors: others agree by it on what they need.
Status make_backends(DataPlane* plane, const BackendSettings& settings,
                     const std::vector<int>& members, const JobExtent& job, BackendSet* backends) {
  const std::vector<std::string> names = backend_words(settings.wanted);
  for (const std::string& name : names)
    if (name != "nccl" && name != "mpi" && name != "native") return unknown(name);
  const CarrierOrder order = carrier_order(names);
  std::unique_ptr<Backend> made;
  if (Status status = make_native(plane, settings, job, &made); !status.ok()) return status;
  Backend& native = *made;
  backends->owned.push_back(std::move(made));
  std::vector<Backend*> of_host;
  for (const std::string& name : order.of_host) {
    if (name == "native") {
      of_host.push_back(&native);
      continue;
    }
    PairCarrier* pairs = nullptr;
    backends->owned.push_back(make_mpi(settings, members, plane->topology().rank, &pairs));
    if (of_host.empty()) backends->pairs = pairs;  // alike for host's and GPUs' memory
    of_host.push_back(backends->owned.back().get());
  }
  backends->carriers = of_host;
  Backend* staging = nullptr;
  if (!of_host.empty()) {
    backends->owned.push_back(std::make_unique<ChainBackend>(std::move(of_host)));
    staging = backends->owned.back().get();
  }
  const Topology& place = plane->topology();
  const int rank = members.at(static_cast<std::size_t>(place.rank));
  backends->owned.push_back(
      std::make_unique<GpuBackend>(native, staging, place, rank, order.of_gpus, settings.job));
  backends->carriers.push_back(backends->owned.back().get());
  return Status::success();
}

}  // namespace hv::runtime
