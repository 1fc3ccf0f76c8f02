// Which backends there are and what the native one takes on.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "runtime/backend/backend_list.h"
#include "runtime/backend/carrier_order.h"
#include "runtime/device/kernels.h"
#include "src/base/text.h"
#include "tests/ranks/collective_checks.h"

namespace hv::runtime {

namespace {

Status made_by(RankContext& context, const BackendSettings& settings, BackendSet* backends,
               const JobExtent& job = {}) {
  return make_backends(context.fabric.data_plane(), settings, {0}, job, backends);
}

}  // namespace

TEST_CASE("the native backend carries by default or by name, and not where others are named") {
  run_ranks({1}, {}, [](RankContext& context) {
    const std::pair<const char*, std::vector<std::string>> cases[] = {
        {"", {"native", "gpus"}},
        {"native", {"native", "gpus"}},
        {"nccl,native", {"native", "gpus"}},
        {"nccl", {"gpus"}}};
    for (const auto& [wanted, names] : cases) {
      BackendSet backends;
      require(made_by(context, {wanted}, &backends).ok(), "backends are made");
      std::vector<std::string> carriers;
      for (const Backend* one : backends.carriers) carriers.emplace_back(one->name());
      require(carriers == names, wanted);
    }
  });
}

TEST_CASE("on GPUs the list's own order counts, in which native is the way through the host") {
  using enum GpuWay;
  const std::pair<std::vector<std::string>, std::vector<GpuWay>> cases[] = {
      {{}, {kNccl, kStaged}},
      {{"native"}, {kStaged}},
      {{"nccl"}, {kNccl}},
      {{"mpi"}, {kAddresses, kStaged}},
      {{"nccl", "mpi", "native"}, {kNccl, kAddresses, kStaged}},
      {{"mpi", "nccl", "native"}, {kAddresses, kNccl, kStaged}},
      {{"mpi", "nccl"}, {kAddresses, kNccl, kStaged}},
      {{"mpi", "native", "nccl"}, {kAddresses, kStaged}},
      {{"native", "nccl"}, {kStaged}},
      {{"native", "mpi"}, {kStaged}}};
  for (const auto& [names, ways] : cases) {
    CAPTURE(join(names, ","));
    CHECK(carrier_order(names).of_gpus == ways);
  }
  CHECK(carrier_order({"mpi", "nccl", "native"}).of_host ==
        std::vector<std::string>{"mpi", "native"});
  CHECK((is_nccl_idle({"native", "nccl"}) && is_nccl_idle({"mpi", "native", "nccl"})));
  CHECK_FALSE((is_nccl_idle({"native"}) || is_nccl_idle({"mpi", "nccl", "native"})));
}

TEST_CASE("who carries what is said in words") {
  const auto words = [](const char* wanted) { return carriers_in_words({wanted}); };
  CHECK(words("") == "on the host's memory native; on GPUs' memory nccl, else through the host's");
  CHECK(words("native") == "on the host's memory native; on GPUs' memory through the host's");
  CHECK(words("nccl") == "on the host's memory nobody; on GPUs' memory nccl");
  CHECK(words("native,nccl") ==
        "on the host's memory native; on GPUs' memory through the host's, and never nccl, for "
        "native comes before it");
  const auto places = std::make_shared<MpiPlaces>();
  places->library = "Open MPI v4.1.4";
  BackendSettings settings{"mpi,native"};
  settings.mpi = places;
  CHECK(carriers_in_words(settings) ==
        "on the host's memory mpi (Open MPI v4.1.4), native; on GPUs' memory through the host's");
  places->is_cuda_aware = true;
  settings.wanted = "mpi,nccl,native";
  CHECK(carriers_in_words(settings) ==
        "on the host's memory mpi (Open MPI v4.1.4, aware of CUDA), native; on GPUs' memory mpi by "
        "their addresses, else nccl, else through the host's");
}

TEST_CASE("an unknown backend is refused with the names there are") {
  run_ranks({1}, {}, [](RankContext& context) {
    BackendSet backends;
    const Status status = made_by(context, {"native,carrier-pigeon"}, &backends);
    require(status.code == StatusCode::kUnsupported, "refused");
    require(status.message.find("nccl, mpi, native") != std::string::npos, status.message);
    require(status.message.find("carrier-pigeon") != std::string::npos, status.message);
  });
}

TEST_CASE("algorithms and kernels that cannot work here are refused in words") {
  run_ranks({1}, {}, [](RankContext& context) {
    const auto refusal = [&](const BackendSettings& settings, const JobExtent& job) {
      BackendSet backends;
      const Status status = made_by(context, settings, &backends, job);
      require(status.ok() == status.message.empty(), status.message);
      return status.message;
    };
    const auto require_words = [](const std::string& message, const std::string& words) {
      require(message.find(words) != std::string::npos, "'" + words + "' in: " + message);
    };
    require_words(refusal({.algorithms = "allreduce:rings"}, {4, 2}), "allreduce:shares");
    require_words(refusal({.algorithms = "cross:ring"}, {4, 1}), "this job has 4 ranks on 1 host");
    require_words(refusal({.algorithms = "cross:ring", .deterministic = true}, {4, 2}),
                  "HVRUN_DETERMINISTIC");
    require(refusal({.algorithms = "cross:ring"}, {4, 2}).empty(), "a ring on two hosts");
    require_words(refusal({.kernels = "mmx"}, {1, 1}), "portable");
    for (const Kernels* kernels : usable_kernels())
      require(refusal({.kernels = kernels->name}, {1, 1}).empty(), kernels->name);
  });
}

TEST_CASE("the native backend takes every type and reduction, but no scaled or averaged bool") {
  run_ranks({1}, {}, [](RankContext& context) {
    for (const ElementType type : all_types())
      for (const Reduction reduction : all_reductions())
        require(context.backend.supports(allreduce_of(type, reduction)), element_type_name(type));
    CollectiveRequest request = allreduce_of(ElementType::kBool, Reduction::kSum);
    request.divisor = 2;
    require(!context.backend.supports(request), "no averaged bool");
    request = allreduce_of(ElementType::kBool, Reduction::kSum);
    request.prescale = 2;
    require(!context.backend.supports(request), "no scaled bool");
    request = allreduce_of(ElementType::kInt32, Reduction::kSum);
    request.divisor = 0;
    require(!context.backend.supports(request), "no division by nothing");
  });
}

}  // namespace hv::runtime
