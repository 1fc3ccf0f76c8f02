// Tests of the whole inventory, as bytes and as JSON, and of the host as hwloc sees it.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/inventory/inventory.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "launcher/facts/read_file.h"
#include "launcher/inventory/hwloc_topology.h"
#include "src/base/core_mask.h"
#include "src/wire/codec.h"
#include "tests/unit/paths.h"
#include "tests/unit/temporary_folder.h"

using namespace hv;
using namespace hv::launcher;

namespace {

wire::Inventory take() {
  ::setenv("HVRUN_TEST_NVML", "", 1);
  return take_inventory(
      {tests::test_library("nvml/libnvidia-ml.so.1"), "libhwloc.so.none", "/none"});
}

}  // namespace

TEST_CASE("each library that is missing is one problem, and the other tells what it knows") {
  const wire::Inventory inventory = take();
  CHECK(inventory.gpus.size() == 8);
  CHECK(inventory.gpu_problem == "");
  CHECK(inventory.topology_problem.rfind("libhwloc.so.none: ", 0) == 0);
  const wire::Inventory other = take_inventory({"libnone.so.1", kHwlocLibrary, "/none"});
  CHECK(other.gpu_problem.rfind("libnone.so.1: ", 0) == 0);
}

TEST_CASE("an inventory comes through its encoding whole, and far below its limit") {
  const wire::Inventory inventory = take();
  const std::string bytes = encode(inventory);
  CHECK(bytes.size() < wire::kMaxInventoryBytes / 100);
  wire::Inventory copy;
  REQUIRE(decode(bytes, &copy));
  CHECK(copy.gpus[5].mig[1].uuid == inventory.gpus[5].mig[1].uuid);
  CHECK(encode(copy) == bytes);
}

TEST_CASE("people get JSON with everything in it") {
  const auto json = nlohmann::json::parse(inventory_as_json(take()));
  CHECK(json["version"] == 1);
  CHECK(json["driver"] == "550.54.15");
  CHECK(json["gpus"][5]["mig_devices"][2]["memory_bytes"] == 20ull << 30);
  CHECK(json["gpus"][5]["mig_mode"] == true);
  CHECK(json["gpus"][6]["index"] == 6);
  CHECK(json["gpus"][6]["health"]["repair_pending"] == true);
  CHECK(json["gpus"][6]["numa_node"].is_null());
  CHECK(json["gpus"][0]["nvlinks_to"].size() == 3);
  CHECK(json["gpus"][0]["peer_access"].size() == 6);
  CHECK(json["gpus"][0]["peer_access"][0]["works"] == true);
  CHECK(json["gpus"][0]["pcie"]["max_width"] == 16);
  CHECK(json["gpus"][5]["busy_percent"].is_null());
  CHECK(json["cuda"] == "12.4");
  REQUIRE(json["problems"].size() == 2);
  CHECK(json["problems"][1] == "/none/dev/kmsg: No such file or directory");
}

TEST_CASE("what the driver has written to the kernel's log comes with its GPU") {
  const tests::TemporaryFolder root;
  std::filesystem::create_directory(root / "dev");
  std::ofstream(root / "dev/kmsg") << "4,1,1000,-;NVRM: Xid (PCI:0000:29:00): 79, pid=1, gone\n";
  ::setenv("HVRUN_TEST_NVML", "", 1);
  const auto inventory = take_inventory(
      {tests::test_library("nvml/libnvidia-ml.so.1"), "libhwloc.so.none", root.path()});
  CHECK(inventory.xid_problem == "");
  CHECK(inventory.gpus[0].xids.empty());
  REQUIRE(inventory.gpus[1].xids.size() == 1);
  CHECK(inventory.gpus[1].xids[0].seconds_ago > 0);
  const auto json = nlohmann::json::parse(inventory_as_json(inventory));
  CHECK(json["gpus"][1]["xids"][0]["number"] == 79);
}

TEST_CASE("hwloc sees this machine's cores") {
  const HwlocReading reading = read_hwloc(kHwlocLibrary, true);
  if (!reading.problem.empty()) {
    MESSAGE("no hwloc here: " << reading.problem);
    return;
  }
  CHECK(reading.topology.threads >= static_cast<std::uint32_t>(count_cores(own_cores())));
  CHECK(reading.topology.cores > 0);
  CHECK(reading.topology.numa_nodes > 0);
  const std::string maps = read_file("/proc/self/maps", 4 << 20).value_or("");
  CHECK(maps.find("libhwloc") != std::string::npos);
  for (const char* plugin : {"hwloc_xml", "hwloc_opencl", "hwloc_gl", "libxml2", "libX11"}) {
    CAPTURE(plugin);
    CHECK(maps.find(plugin) == std::string::npos);
  }
  CHECK(read_hwloc("libm.so.6", true).problem == "libm.so.6: it has no hwloc_get_api_version");
}
