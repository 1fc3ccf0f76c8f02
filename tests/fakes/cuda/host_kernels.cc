// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/cuda/host_kernels.h"

#include "runtime/device/cuda/driver_abi.h"
#include "runtime/device/cuda/kernels/kernel_list.h"
#include "runtime/device/cuda/kernels/move.h"
#include "tests/fakes/cuda/device_memory.h"
#include "tests/fakes/cuda/world.h"

namespace hv::fake {
namespace {

using namespace hv::cuda;

bool make_visible(std::uint64_t* address, std::uint64_t bytes) {
  std::byte* const seen = DeviceMemory::of_process().view(*address, bytes);
  *address = reinterpret_cast<std::uint64_t>(seen);
  return seen != nullptr;
}

// The strips' addresses become those where the host sees that memory. False: some is none.
bool make_visible(StripList* list, std::size_t from_bytes, std::size_t to_bytes) {
  const std::uint64_t chunk = chunk_elements(from_bytes, to_bytes);
  std::uint32_t begin = 0;
  bool is_memory = true;
  for (std::uint32_t i = 0; i < list->count; ++i) {
    ListedStrip& strip = list->strips[i];
    const std::uint64_t count = (strip.end - begin - 1) * chunk + strip.last;
    is_memory = is_memory && make_visible(&strip.from, count * from_bytes) &&
                make_visible(&strip.to, count * to_bytes);
    begin = strip.end;
  }
  return is_memory;
}

template <class Move>
int move(const Grid& grid, void* const* arguments) {
  auto* const list = static_cast<StripList*>(arguments[0]);
  if (!make_visible(list, sizeof(typename Move::From), sizeof(typename Move::To)))
    return kIllegalAddress;
  for (unsigned block = 0; block < grid.blocks; ++block)
    for (unsigned thread = 0; thread < grid.threads; ++thread)
      move_strips<Move>(*list, {block, grid.blocks, thread, grid.threads});
  return kSuccess;
}

const std::vector<HostKernel>& kernels() {
#define HV_ONE(from, to, From, To, from_name, to_name) \
  {"hvrun_" #from_name "_to_" #to_name, {sizeof(StripList)}, move<Conversion<From, To>>},
  static const std::vector<HostKernel> list = {
      HV_MOVE_KERNELS(HV_ONE){"hvrun_copy", {sizeof(StripList)}, move<Copy>}};
#undef HV_ONE
  return list;
}

}  // namespace

const HostKernel* find_host_kernel(const std::string& name) {
  for (const HostKernel& kernel : kernels())
    if (kernel.name == name) return &kernel;
  return nullptr;
}

}  // namespace hv::fake
