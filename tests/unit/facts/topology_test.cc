// Tests of where cores, GPUs and adapters lie, by made-up /sys trees.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/facts/topology.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/temporary_folder.h"

using namespace hv::launcher;

namespace {

class Sys {
 public:
  void file(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name)) << text;
  }
  void link(const std::string& name, const std::string& target) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::filesystem::create_directories(path(target));
    std::filesystem::create_symlink(path(target), path(name));
  }
  std::string path(const std::string& name) const { return folder_ / ("sys/" + name); }
  std::string root() const { return folder_.path(); }

 private:
  hv::tests::TemporaryFolder folder_;
};

// "0:0,4 1:1,5": node and threads of each core.
std::string picture(const std::vector<hv::wire::Core>& cores) {
  std::string text;
  for (const auto& core : cores) {
    text += (text.empty() ? "" : " ") + std::to_string(core.node);
    for (std::size_t i = 0; i < core.threads.size(); ++i)
      text += (i ? "," : ":") + std::to_string(core.threads[i]);
  }
  return text;
}

}  // namespace

TEST_CASE("cores come with their threads, in the order of their nodes") {
  const Sys sys;
  sys.file("devices/system/node/node0/cpulist", "0,2,4,6\n");
  sys.file("devices/system/node/node1/cpulist", "1,3,5,7\n");
  for (int core = 0; core < 8; ++core)
    sys.file("devices/system/cpu/cpu" + std::to_string(core) + "/topology/thread_siblings_list",
             std::to_string(core % 4) + "," + std::to_string(core % 4 + 4) + "\n");
  CHECK(picture(read_cores({0xff}, sys.root())) == "0:0,4 0:2,6 1:1,5 1:3,7");
  // A process that may use some threads only has the cores of those.
  CHECK(picture(read_cores({0x31}, sys.root())) == "0:0,4 1:5");
}

TEST_CASE("a core's socket is what the system calls its package") {
  const Sys sys;
  for (int core = 0; core < 4; ++core)
    sys.file("devices/system/cpu/cpu" + std::to_string(core) + "/topology/physical_package_id",
             core == 3 ? "-1\n" : std::to_string(core / 2 * 36) + "\n");
  std::vector<std::uint32_t> packages;
  for (const auto& core : read_cores({0x1f}, sys.root())) packages.push_back(core.package);
  CHECK(packages == std::vector<std::uint32_t>{0, 0, 36, 0, 0});
}

TEST_CASE("a host that tells nothing has cores of one thread on one node") {
  CHECK(picture(read_cores({0x5}, "/no/such/root")) == "0:0 0:2");
  CHECK(picture(read_cores({0, 1}, "/no/such/root")) == "0:64");
  CHECK(read_cores({}, "/no/such/root").empty());
}

TEST_CASE("lists of cores as the kernel writes them, and what is none") {
  CHECK(parse_core_list("0-2,7\n") == std::vector<std::uint32_t>{0, 1, 2, 7});
  for (const char* text : {"", "x", "3-1", "-1", "0-70000", "1,,2", "0-"})
    CHECK_FALSE(parse_core_list(text).has_value());
  std::string often = "0-65535";
  for (int i = 0; i < 10; ++i) often += ",0-65535";
  CHECK_FALSE(parse_core_list(often).has_value());
}

TEST_CASE("a device's place in the PCI tree is its real path, and its node may be unknown") {
  const Sys sys;
  sys.link("bus/pci/devices/0000:3b:00.0", "devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0");
  sys.file("bus/pci/devices/0000:3b:00.0/numa_node", "1\n");
  const PciPlace place = pci_place(sys.path("bus/pci/devices/0000:3b:00.0"));
  CHECK(place.node == 1);
  CHECK(place.path == "pci0000:3a/0000:3a:00.0/0000:3b:00.0");
  sys.file("bus/pci/devices/0000:3b:00.0/numa_node", "-1\n");
  CHECK(pci_place(sys.path("bus/pci/devices/0000:3b:00.0")).node == hv::wire::kNoNode);
  CHECK(pci_place("/no/such/device").path.empty());
}

TEST_CASE("RDMA adapters are those with a port that is up") {
  const Sys sys;
  for (const char* name : {"mlx5_1", "mlx5_0", "mlx5_2"}) {
    sys.link(std::string("class/infiniband/") + name + "/device",
             std::string("devices/pci0000:00/") + name);
    sys.file(std::string("devices/pci0000:00/") + name + "/numa_node", "0\n");
    sys.file(std::string("class/infiniband/") + name + "/ports/1/state",
             name == std::string("mlx5_2") ? "1: DOWN\n" : "4: ACTIVE\n");
  }
  const auto adapters = read_rdma(sys.root());
  REQUIRE(adapters.size() == 2);
  CHECK(adapters[0].name == "mlx5_0");
  CHECK(adapters[0].node == 0);
  CHECK(adapters[1].pci_path == "pci0000:00/mlx5_1");
  CHECK(read_rdma("/no/such/root").empty());
}
