// Tests of what is read of the driver's library: over the stand-in of tests/fakes/nvml.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/inventory/nvml_gpus.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "src/base/symbol.h"
#include "src/base/text.h"
#include "tests/unit/paths.h"
#include "tests/unit/temporary_folder.h"

using namespace hv;
using namespace hv::launcher;

namespace {

const std::string kLibrary = tests::test_library("nvml/libnvidia-ml.so.1");
const std::string kOldLibrary = tests::test_library("nvml-old/libnvidia-ml.so.1");

int count_of(const char* name) {
  void* const library = ::dlopen(kLibrary.c_str(), RTLD_NOW);
  REQUIRE(library != nullptr);
  int (*count)() = nullptr;
  REQUIRE(find_function(library, name, &count));
  return count();
}

NvmlReading read_gpus(const std::string& machine = "", const std::string& library = kLibrary,
                      const std::vector<wire::Gpu>& known = {}, const std::string& root = "/none") {
  ::setenv("HVRUN_TEST_NVML", machine.c_str(), 1);
  return read_nvml(library, known, root);
}

}  // namespace

TEST_CASE("GPUs come with names, memory and the kernel's form of their addresses") {
  const NvmlReading reading = read_gpus();
  CHECK(reading.problem == "");
  CHECK(reading.driver == "550.54.15");
  REQUIRE(reading.gpus.size() == 8);
  const wire::InventoryGpu& gpu = reading.gpus[4];
  CHECK(gpu.pci_address == "0000:9b:00.0");
  CHECK(gpu.uuid == "GPU-00000000-0000-4000-8000-000000000004");
  CHECK(gpu.name == "NVIDIA A100-SXM4-80GB");
  CHECK(gpu.minor == 6);
  CHECK(gpu.memory_bytes == 80ull << 30);
  CHECK(!gpu.has_mig_mode);
  CHECK(count_of("fake_nvml_mistakes") == 0);
  CHECK(count_of("fake_nvml_sessions") == 0);  // it was shut down
}

TEST_CASE("NVLinks are told by their far ends, a switch for one") {
  const auto gpus = read_gpus().gpus;
  CHECK(join(gpus[0].links, " ") == "0000:29:00.0 0000:45:00.0 0000:4e:00.0");
  CHECK(join(gpus[4].links, " ") == "0000:8a:00.0");
  CHECK(gpus[5].links.empty());
  CHECK(join(read_gpus("secret-switch").gpus[7].links, " ") == "switch");
  CHECK(join(read_gpus("null-switch").gpus[7].links, " ") == "switch");
  CHECK(join(read_gpus("no-switch").gpus[7].links, " ") == "switch");
}

TEST_CASE("a GPU in MIG mode has its devices, wherever their places are") {
  const wire::InventoryGpu gpu = read_gpus().gpus[5];
  CHECK(gpu.has_mig_mode);
  REQUIRE(gpu.mig.size() == 3);
  CHECK(gpu.mig[2].uuid == "MIG-00000005-0000-4000-8000-000000000002");
  CHECK(gpu.mig[2].name == "NVIDIA A100-SXM4-80GB MIG 2g.20gb");
  CHECK(gpu.mig[2].gpu_instance == 5);
  CHECK(gpu.mig[2].memory_bytes == 20ull << 30);
  CHECK(gpu.mig[2].may_open);
  CHECK(count_of("fake_nvml_mistakes") == 0);
}

TEST_CASE("errors of memory, and repairs that wait or have failed, are told") {
  const auto gpus = read_gpus("beyond-repair=2").gpus;
  CHECK(gpus[6].health.volatile_errors == 3);
  CHECK(gpus[6].health.aggregate_errors == 5);
  CHECK(gpus[6].health.is_pending);
  CHECK(!gpus[6].health.remap_failed);
  CHECK(gpus[2].health.remap_failed);
  CHECK(gpus[1].health.volatile_errors == 0);
  CHECK(!gpus[1].health.is_pending);
}

TEST_CASE("who uses a GPU is told, what the driver keeps for itself left out") {
  const NvmlReading reading = read_gpus("busy=1 cuda=13000");
  CHECK(reading.cuda == "13.0");
  const wire::GpuUse& busy = reading.gpus[1].use;
  CHECK(busy.used_bytes == 20ull << 30);
  CHECK(busy.busy_percent == 97);
  REQUIRE(busy.processes.size() == 1);
  CHECK(busy.processes[0].pid == 4711);
  CHECK(busy.processes[0].memory_bytes == 20ull << 30);
  CHECK(busy.processes[0].name == "");  // of /none nothing is known
  CHECK(reading.gpus[2].use.used_bytes == 0);
  CHECK(reading.gpus[2].use.busy_percent == 0);
  CHECK(reading.gpus[2].use.processes.empty());
  CHECK_FALSE(reading.gpus[5].use.busy_percent);  // MIG mode
  CHECK(reading.gpus[5].mig[0].use.used_bytes == 0);
  CHECK(count_of("fake_nvml_mistakes") == 0);
}

TEST_CASE("of a crowd on a GPU some are told") {
  const auto gpus = read_gpus("crowd").gpus;
  REQUIRE(gpus[0].use.processes.size() == 64);
  CHECK(gpus[0].use.processes[63].pid == 4711 + 63);
  CHECK(gpus[0].use.processes[63].memory_bytes == 0);  // the driver does not tell it
}

TEST_CASE("a process is named where its number is of the host's own PID namespace") {
  const tests::TemporaryFolder root;
  std::filesystem::create_directories(root / "proc/4711");
  std::filesystem::create_directories(root / "proc/self/ns");
  std::ofstream(root / "proc/4711/comm") << "train me\n";
  const auto name = [&root] {
    return read_gpus("busy=1", kLibrary, {}, root.path()).gpus[1].use.processes.at(0).name;
  };
  std::filesystem::create_symlink("pid:[4026532001]", root / "proc/self/ns/pid");
  CHECK(name() == "");
  std::filesystem::remove(root / "proc/self/ns/pid");
  std::filesystem::create_symlink("pid:[4026531836]", root / "proc/self/ns/pid");
  CHECK(name() == "train me");
}

TEST_CASE("modes, PCIe links and what slows a GPU down are told") {
  const auto gpus = read_gpus("exclusive=0 prohibited=1 narrow=2 hot=3 no-persistence").gpus;
  CHECK(gpus[0].compute_mode == "exclusive");
  CHECK(gpus[1].compute_mode == "prohibited");
  CHECK(gpus[2].compute_mode == "default");
  CHECK(gpus[0].has_persistence == false);
  CHECK(read_gpus().gpus[0].has_persistence == true);
  CHECK(gpus[0].has_ecc == true);
  CHECK(gpus[2].pcie.width == 8);
  CHECK(gpus[3].pcie.width == 16);
  CHECK(gpus[2].pcie.most_width == 16);
  CHECK(gpus[2].pcie.generation == 1);
  CHECK(gpus[2].pcie.most_generation == 4);
  CHECK(gpus[3].slowdown == "heat");
  CHECK(gpus[2].slowdown == "");
}

TEST_CASE("each GPU tells which others it reaches, those in MIG mode left out") {
  const auto gpus = read_gpus().gpus;
  REQUIRE(gpus[0].peers.size() == 6);
  CHECK(gpus[0].peers[0].pci_address == "0000:29:00.0");
  CHECK(gpus[0].peers[0].refusal == "");
  CHECK(gpus[5].peers.empty());
  CHECK(read_gpus("no-peers").gpus[3].peers[0].refusal == "the chipset does not support it");
  CHECK(count_of("fake_nvml_mistakes") == 0);
}

TEST_CASE("a GPU that is lost is told with the place that /proc knows") {
  const std::vector<wire::Gpu> known{{"0000:4e:00.0", "A100", "GPU-known", 1},
                                     {"0000:f0:00.0", "A100", "", 9}};
  const auto gpus = read_gpus("lost=3", kLibrary, known).gpus;
  REQUIRE(gpus.size() == 8);  // and not the one of which the driver knows nothing
  CHECK(gpus[3].pci_address == "0000:4e:00.0");
  CHECK(gpus[3].uuid == "GPU-known");
  CHECK(gpus[3].health.is_lost);
  CHECK(!gpus[2].health.is_lost);
  CHECK(read_gpus("lost=3").gpus.size() == 7);
}

TEST_CASE("a GPU that has to be reset is told, though it answers nothing") {
  const auto gpus = read_gpus("reset=0", kLibrary, {{"0000:1b:00.0", "A100", "", 2}}).gpus;
  REQUIRE(gpus.size() == 8);
  CHECK(gpus[0].health.needs_reset);
  CHECK(gpus[0].name == "A100");
}

TEST_CASE("an old driver tells what it can") {
  const NvmlReading reading = read_gpus("", kOldLibrary);
  CHECK(reading.problem == "");
  REQUIRE(reading.gpus.size() == 8);
  CHECK(reading.gpus[5].mig.empty());
  CHECK(!reading.gpus[6].health.is_pending);
  CHECK(reading.gpus[6].health.volatile_errors == 3);
  CHECK(reading.gpus[0].links.size() == 3);
  CHECK(reading.cuda == "");
  const wire::GpuUse use = read_gpus("busy=1", kOldLibrary).gpus[1].use;
  CHECK(use.used_bytes == (20ull << 30) + (1ull << 29));  // it cannot tell what it keeps itself
  REQUIRE(use.processes.size() == 1);
  CHECK(use.processes[0].pid == 4711);
  CHECK(use.processes[0].memory_bytes == 20ull << 30);
}

TEST_CASE("a library that is not there, is another, or has no driver is a problem by name") {
  CHECK(read_gpus("", "libnvidia-ml.so.0").problem ==
        "libnvidia-ml.so.0: cannot open shared object file: No such file or directory");
  CHECK(read_gpus("", "libm.so.6").problem ==
        "libm.so.6: it has no nvmlInit_v2, so the driver is too old");
  const NvmlReading dead = read_gpus("no-driver");
  CHECK(dead.problem == kLibrary + ": nvmlInit: Driver Not Loaded");
  CHECK(dead.gpus.empty());
}
