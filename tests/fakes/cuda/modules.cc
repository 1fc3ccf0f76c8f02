// Modules and their kernels.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string_view>
#include <vector>

#include "tests/fakes/cuda/host_kernels.h"
#include "tests/fakes/cuda/world.h"

namespace hv::cuda {

using namespace fake;

struct FunctionState {
  const HostKernel* kernel = nullptr;
};
struct ModuleState {
  std::deque<FunctionState> functions;  // go with it
};

namespace {

// Of either kind that the runtime has; what is in it stays unread.
bool is_image(const void* image) {
  constexpr std::uint32_t kFatbin = 0xba55ed50;
  std::uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof magic);  // a text, too, has as much
  const std::string_view begin(static_cast<const char*>(image), sizeof magic);
  return magic == kFatbin || begin.starts_with("//") || begin == ".ver";
}

}  // namespace

int cuModuleLoadData(Module* module, const void* image) {
  HV_ENTER_UNSAFE(Needs::kContext);
  if (image == nullptr) return kInvalidValue;
  if (!is_image(image)) return kInvalidImage;
  *module = new ModuleState;
  return kSuccess;
}

int cuModuleUnload(Module module) {
  HV_ENTER_UNSAFE(Needs::kContext);
  delete module;
  return kSuccess;
}

int cuModuleGetFunction(Function* function, Module module, const char* name) {
  HV_ENTER(Needs::kContext);
  const HostKernel* const kernel = find_host_kernel(name);
  if (module == nullptr || kernel == nullptr) return kNotFound;
  *function = &module->functions.emplace_back(FunctionState{kernel});
  return kSuccess;
}

int cuLaunchKernel(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   Stream stream, void** arguments, void** extra) {
  if (grid_y != 1 || grid_z != 1 || block_y != 1 || block_z != 1 || extra != nullptr ||
      shared_bytes > 48u << 10 || grid_x == 0 || block_x == 0 || block_x > 1024)
    return kInvalidValue;
  std::vector<std::vector<std::byte>> copies;
  for (std::size_t number = 0; number < function->kernel->argument_bytes.size(); ++number) {
    const auto* const argument = static_cast<const std::byte*>(arguments[number]);
    copies.emplace_back(argument, argument + function->kernel->argument_bytes[number]);
  }
  return put(__func__, stream, [=, run = function->kernel->run]() mutable {
    std::vector<void*> addresses;
    for (std::vector<std::byte>& copy : copies) addresses.push_back(copy.data());
    return run({grid_x, block_x}, addresses.data());
  });
}

}  // namespace hv::cuda
