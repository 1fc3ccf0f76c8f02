// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/carrier_table.h"

#include <algorithm>

#include "runtime/backend/carrier_order.h"
#include "runtime/backend/mpi/mpi_abilities.h"
#include "runtime/backend/native/native_backend.h"
#include "src/base/text.h"

namespace hv::runtime {
namespace {

constexpr const char* kNobody = "nobody";

struct Row {
  const char* words;
  CollectiveKind kind;
  Reduction reduction = Reduction::kSum;
  ElementType type = ElementType::kFloat32;
  bool deterministic = false;
};

// Those that differ in who can.
constexpr Row kRows[] = {
    {"allreduce", CollectiveKind::kAllreduce},
    {"  of int16 or bool", CollectiveKind::kAllreduce, Reduction::kSum, ElementType::kInt16},
    {"  by Adasum", CollectiveKind::kAllreduce, Reduction::kAdasum},
    {"  HVRUN_DETERMINISTIC=1", CollectiveKind::kAllreduce, Reduction::kSum, ElementType::kFloat32,
     true},
    {"  of sparse tensors", CollectiveKind::kSparseAllreduce},
    {"reducescatter", CollectiveKind::kReducescatter},
    {"allgather", CollectiveKind::kAllgather},
    {"broadcast", CollectiveKind::kBroadcast},
    {"alltoall", CollectiveKind::kAlltoall}};

// Of one tensor, on the host.
CollectiveRequest request_of(const Row& row, const CarrierQuestion& question) {
  CollectiveRequest request;
  request.kind = row.kind;
  request.type = row.type;
  request.reduction = row.reduction;
  request.deterministic = row.deterministic || question.deterministic;
  request.segments.resize(row.kind == CollectiveKind::kSparseAllreduce ? 2 : 1);
  return request;
}

std::string on_host(const CollectiveRequest& request, const CarrierOrder& order) {
  for (const std::string& name : order.of_host)
    if (name == "mpi" ? mpi_carries(request, false) : NativeBackend::carries(request)) return name;
  return kNobody;
}

std::string on_gpus(const CollectiveRequest& request, const CarrierOrder& order,
                    const CarrierQuestion& question) {
  using Addresses = CarrierQuestion::Addresses;
  CollectiveRequest there = request, out_of_reach = request;
  there.memory = MemoryKind::kCuda;
  out_of_reach.is_out_of_reach = true;
  std::vector<std::string> chain;
  for (const GpuWay way : order.of_gpus) {
    if (way == GpuWay::kNccl && question.nccl && question.nccl(there)) chain.emplace_back("nccl");
    if (way == GpuWay::kAddresses && question.of_gpus != Addresses::kNever &&
        mpi_carries(out_of_reach, true)) {
      const bool is_sure = question.of_gpus == Addresses::kAlways;
      chain.emplace_back(is_sure ? "mpi by address" : "mpi by address if aware of CUDA");
      if (is_sure) break;
    }
    const std::string host = on_host(request, order);
    if (way == GpuWay::kStaged && host != kNobody) chain.push_back(host + " through the host's");
  }
  return chain.empty() ? kNobody : join(chain, ", else ");
}

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(width - std::min(width, text.size()), ' ');
}

}  // namespace

std::string carrier_table(const CarrierQuestion& question) {
  constexpr std::size_t kFirst = 25, kSecond = 15;
  const CarrierOrder order = carrier_order(question.names);
  std::string text =
      padded("OPERATION", kFirst) + padded("HOST'S MEMORY", kSecond) + "GPUS' MEMORY\n";
  for (const Row& row : kRows) {
    const CollectiveRequest request = request_of(row, question);
    text += padded(row.words, kFirst) + padded(on_host(request, order), kSecond) +
            on_gpus(request, order, question) + "\n";
  }
  // Of no backend's: by MPI where that is the first of the host's.
  const std::string between_two =
      !order.of_host.empty() && order.of_host.front() == "mpi" ? "mpi" : "native";
  text += padded("send, receive", kFirst) + padded(between_two, kSecond) + between_two +
          " through the host's\n";
  if (is_nccl_idle(question.names))
    text += "NCCL is never asked: native, which is named before it, carries out all that it can.\n";
  return text;
}

}  // namespace hv::runtime
