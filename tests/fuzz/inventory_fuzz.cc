// What a host says of its GPUs: /proc's facts (the first byte's low bits choose some) and the bytes
// of hvrun-inventory's answer, as they become slots, names and warnings.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "launcher/plan/gpu_inventory.h"
#include "src/wire/codec.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::launcher;

namespace {

wire::Inventory three_gpus() {
  wire::Inventory told;
  told.gpus.resize(3);
  for (std::size_t i = 0; i < 3; ++i) {
    told.gpus[i].pci_address = "p" + std::to_string(i);
    told.gpus[i].uuid = "GPU-" + std::to_string(i);
  }
  told.gpus[0].links = {"p2", "s"};
  told.gpus[2].links = {"s"};
  told.gpus[1].has_mig_mode = true;
  told.gpus[1].mig = {{"MIG-a", "1g", 7, 0, 10, true}, {"MIG-b", "1g", 8, 0, 10, true}};
  return told;
}

void check_gpus(const std::vector<GpuFacts>& gpus) {
  const std::vector<int> numbers = gpu_numbers(gpus);
  HV_CHECK(numbers.size() == gpus.size(), "a number for each");
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    HV_CHECK(i == 0 ? numbers[i] == 0 : numbers[i] - numbers[i - 1] <= 1, "no number is left out");
    HV_CHECK(!gpus[i].cuda_name.empty(), "a name for CUDA");
    HV_CHECK(gpus[i].cuda_name.find_first_of(",= \n") == std::string::npos, "a plain name");
  }
  std::vector<int> all(gpus.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  for (const std::size_t each : {1u, 2u, 3u}) {
    std::vector<int> grouped = grouped_by_island(all, each, gpus);
    std::sort(grouped.begin(), grouped.end());
    HV_CHECK(grouped == all, "each GPU once");
  }
}

}  // namespace

namespace hv::fuzz {

std::vector<std::string> seeds() {
  const std::string bytes = encode(three_gpus());
  return {'\x07' + piece("") + bytes, '\x07' + piece("1,0") + bytes,
          '\x0f' + piece("MIG-a,GPU-2") + bytes};
}

}  // namespace hv::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(fuzz::view(data, size));
  const std::uint8_t bits = input.byte();
  wire::Facts told;
  for (std::uint32_t i = 0; i < 3; ++i)
    if (bits >> i & 1) told.gpus.push_back({"p" + std::to_string(i), "A100", "", i});
  told.visible_devices = std::string(input.piece());
  told.has_visible_devices = !told.visible_devices.empty();
  wire::Inventory inventory;
  const bool is_told = decode(input.rest(), &inventory) && inventory.gpus.size() < 64;
  const GpusOfHost found = gpus_of(told, is_told ? &inventory : nullptr);
  // What CUDA_VISIBLE_DEVICES itself calls a GPU is passed on as it stands.
  if (!told.has_visible_devices) check_gpus(found.gpus);
  (void)needs_inventory({}, {}, 0, told);
  for (const int island : islands_of(inventory.gpus))
    HV_CHECK(island < static_cast<int>(inventory.gpus.size()), "an island is some GPU's");
  return 0;
}
