// Facts of made-up hosts: trees of /proc and /sys files in a temporary folder.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "launcher/facts/cgroup_paths.h"
#include "launcher/facts/cores.h"
#include "launcher/facts/facts.h"
#include "launcher/facts/gpus.h"
#include "launcher/facts/memory.h"
#include "launcher/facts/mig.h"
#include "launcher/facts/read_file.h"
#include "tests/unit/temporary_folder.h"

using namespace hv;
using namespace hv::launcher;

namespace {

class FakeRoot {
 public:
  void file(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path() + name).parent_path());
    std::ofstream(path() + name) << text;
  }
  const std::string& path() const { return folder_.path(); }

 private:
  tests::TemporaryFolder folder_;
};

void add_gpu(const FakeRoot& root, const std::string& address, int minor, bool has_node) {
  root.file(
      "/proc/driver/nvidia/gpus/" + address + "/information",
      "Model: \t\t NVIDIA H200\nIRQ:   \t\t 77\nGPU UUID: \t GPU-????????\nBus Location: \t " +
          address + "\nDevice Minor: \t " + std::to_string(minor) + "\nGPU Excluded:\t No\n");
  if (has_node) root.file("/dev/nvidia" + std::to_string(minor), "");
}

}  // namespace

TEST_CASE("GPUs come in PCI order, and only those whose device node is there") {
  FakeRoot root;
  add_gpu(root, "0000:86:00.0", 0, true);
  add_gpu(root, "0000:3b:00.0", 1, true);
  add_gpu(root, "0000:af:00.0", 2, false);
  root.file("/proc/driver/nvidia/gpus/0000:d8:00.0/information", "Model: broken\n");
  const auto gpus = read_gpus(root.path());
  REQUIRE(gpus.size() == 2);
  CHECK(gpus[0].pci_address == "0000:3b:00.0");
  CHECK(gpus[0].model == "NVIDIA H200");
  CHECK(gpus[0].minor == 1);
  CHECK(gpus[1].minor == 0);
  CHECK(read_gpus("/no/such/root").empty());
}

TEST_CASE("a GPU that is cut into MIG instances is known by its capabilities") {
  FakeRoot root;
  add_gpu(root, "0000:3b:00.0", 1, true);
  add_gpu(root, "0000:86:00.0", 0, true);
  const std::string of_gpu = "/proc/driver/nvidia/capabilities/gpu1/mig/";
  root.file("/proc/driver/nvidia/capabilities/gpu0/mig/config", "DeviceFileMinor: 1\n");
  root.file(of_gpu + "gi7/access", "DeviceFileMinor: 66\nDeviceFileMode: 292\n");
  root.file(of_gpu + "gi7/ci0/access", "DeviceFileMinor: 67\n");
  const auto gpus = read_gpus(root.path());
  REQUIRE(gpus.size() == 2);
  CHECK(gpus[0].has_mig);
  CHECK_FALSE(gpus[1].has_mig);
  CHECK_FALSE(may_open_mig(1, 7, 0, root.path()));
  root.file("/dev/nvidia-caps/nvidia-cap67", "");
  CHECK_FALSE(may_open_mig(1, 7, 0, root.path()));  // the GPU instance's is missing
  root.file("/dev/nvidia-caps/nvidia-cap66", "");
  CHECK(may_open_mig(1, 7, 0, root.path()));
  root.file(of_gpu + "gi7/ci1/access", "DeviceFileMinor: 68\n");
  CHECK_FALSE(may_open_mig(1, 7, 1, root.path()));  // the compute instance's is missing
  CHECK(may_open_mig(1, 9, 0, root.path()));        // of which the driver tells no node
}

TEST_CASE("the agent's environment says which GPUs are visible, and in which order") {
  Environment own;
  CHECK_FALSE(gather_facts(own, "/none").has_visible_devices);
  own.set("CUDA_VISIBLE_DEVICES", "1");
  own.set("CUDA_DEVICE_ORDER", "FASTEST_FIRST");
  CHECK(gather_facts(own, "/none").visible_devices == "1");
  CHECK_FALSE(gather_facts(own, "/none").has_pci_order);
  own.set("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  CHECK(gather_facts(own, "/none").has_pci_order);
}

TEST_CASE("a GPU without a sane minor number is none") {
  CHECK(!parse_gpu("a", ""));
  CHECK(!parse_gpu("a", "Device Minor: x\n"));
  CHECK(!parse_gpu("a", "Device Minor: -1\n"));
  CHECK(!parse_gpu("a", "Device Minor: 99999999999\n"));
}

TEST_CASE("cpu.max is a quota or none") {
  CHECK(*parse_cpu_max("150000 100000\n") == doctest::Approx(1.5));
  for (const char* text : {"max 100000\n", "", "1", "0 100000", "-1 5", "a b", "100 0"})
    CHECK(!parse_cpu_max(text));
}

TEST_CASE("the smallest quota on the way up binds, rounded up") {
  FakeRoot root;
  root.file("/proc/self/cgroup", "0::/a/b\n");
  root.file("/proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
  root.file("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  CHECK(!quota_cores(root.path()));
  root.file("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  CHECK(*quota_cores(root.path()) == 2);
  root.file("/sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
  CHECK(*quota_cores(root.path()) == 1);
  CHECK(usable_cores(root.path()) == 1);
}

TEST_CASE("a quota beyond every machine and a mount without a slash do no harm") {
  FakeRoot root;
  root.file("/proc/self/cgroup", "0::/a\n");
  root.file("/proc/self/mounts",
            "cgroup2 cg cgroup2 rw 0 0\ncgroup2  cgroup2 rw 0 0\ncgroup2 /cg cgroup2 rw 0 0\n");
  root.file("/cg/a/cpu.max", "9223372036854775807 1\n");
  CHECK(*quota_cores(root.path()) == 1u << 20);
  CHECK(parse_cgroup_mounts("x cg cgroup2 rw 0 0\nx  cgroup2 rw 0 0\n").empty());
}

TEST_CASE("quotas of v1 and of a mount with spaces in its name are found") {
  FakeRoot root;
  root.file("/proc/self/cgroup", "3:cpu,cpuacct:/job\n2:memory:/\n0::/\n");
  root.file("/proc/self/mounts",
            "proc /proc proc rw 0 0\ncgroup /sys/my\\040cpu cgroup rw,cpu,cpuacct 0 0\ncgroup2 "
            "/sys/u cgroup2 rw 0 0\n");
  root.file("/sys/my cpu/job/cpu.cfs_quota_us", "250000\n");
  root.file("/sys/my cpu/job/cpu.cfs_period_us", "100000\n");
  CHECK(*quota_cores(root.path()) == 3);
  root.file("/sys/my cpu/job/cpu.cfs_quota_us", "-1\n");
  CHECK(!quota_cores(root.path()));
}

TEST_CASE("in a container whose own path is not mounted the top counts") {
  FakeRoot root;
  root.file("/proc/self/cgroup", "0::/outside/of/here\n");
  root.file("/proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
  root.file("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  CHECK(*quota_cores(root.path()) == 2);
  CHECK(own_v2_folder(root.path()) == root.path() + "/sys/fs/cgroup");
}

TEST_CASE("paths in /proc/self/cgroup") {
  CHECK(v2_path("0::/x\n") == "/x");
  CHECK(v2_path("1:name=systemd:/y\n0::/x:y\n") == "/x:y");
  CHECK(v2_path("1:cpu:/y\n").empty());
  CHECK(v2_path("rubbish").empty());
  CHECK(v1_path("4:cpu,cpuacct:/y\n", "cpuacct") == "/y");
  CHECK(v1_path("4:cpu,cpuacct:/y\n", "memory").empty());
  CHECK(own_v2_folder("/no/such/root").empty());
}

TEST_CASE("memory is the machine's or the group's limit") {
  FakeRoot root;
  root.file("/proc/meminfo", "MemTotal:       2048 kB\nMemFree: 1 kB\n");
  CHECK(memory_bytes(root.path()) == 2048 * 1024);
  root.file("/proc/self/cgroup", "0::/a\n");
  root.file("/proc/self/mounts", "cgroup2 /cg cgroup2 rw 0 0\n");
  root.file("/cg/a/memory.max", "max\n");
  CHECK(memory_bytes(root.path()) == 2048 * 1024);
  root.file("/cg/a/memory.max", "1000000\n");
  CHECK(memory_bytes(root.path()) == 1000000);
  CHECK(memory_bytes("/no/such/root") == 0);
  for (const char* odd : {"-5", "9223372036854775807", "x"}) {
    root.file("/proc/meminfo", std::string("MemTotal: ") + odd + " kB\n");
    CHECK(memory_bytes(root.path()) == 0);
  }
}

TEST_CASE("this host has facts") {
  const wire::Facts facts = gather_facts({});
  CHECK(!facts.hostname.empty());
  CHECK(!facts.machine.empty());
  CHECK(facts.usable_cores >= 1);
  CHECK(facts.memory_bytes > 1u << 20);
}

TEST_CASE("files are read up to a limit, values after labels") {
  FakeRoot root;
  root.file("/long", std::string(10000, 'x'));
  CHECK(read_file(root.path() + "/long", 5000)->size() == 5000);
  CHECK(!read_file(root.path() + "/none"));
  CHECK(!read_file(root.path()));  // a folder
  CHECK(*value_after("B:", "A: 1\nB:\t 2 \nB: 3") == "2");
  CHECK(!value_after("C:", "A: 1\n"));
  CHECK(names_in(root.path()) == std::vector<std::string>{"long"});
}
