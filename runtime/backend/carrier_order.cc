// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/carrier_order.h"

#include <algorithm>

#include "src/contract/backend_words.h"

namespace hv::runtime {
namespace {

template <typename T>
bool has(const std::vector<T>& all, const T& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

}  // namespace

CarrierOrder carrier_order(std::vector<std::string> names) {
  if (names.empty()) names = backend_words(kDefaultBackends);
  CarrierOrder order;
  for (const std::string& name : names) {
    if (name != "nccl") order.of_host.push_back(name);
    if (has(order.of_gpus, GpuWay::kStaged)) continue;
    order.of_gpus.push_back(name == "nccl"  ? GpuWay::kNccl
                            : name == "mpi" ? GpuWay::kAddresses
                                            : GpuWay::kStaged);
  }
  if (!order.of_host.empty() && !has(order.of_gpus, GpuWay::kStaged))
    order.of_gpus.push_back(GpuWay::kStaged);
  return order;
}

bool is_nccl_idle(const std::vector<std::string>& names) {
  return has(names, std::string("nccl")) && !has(carrier_order(names).of_gpus, GpuWay::kNccl);
}

}  // namespace hv::runtime
