// The files of /proc and /sys that tell what a host has: "== NAME" lines part the input into files.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "launcher/facts/cgroup_paths.h"
#include "launcher/facts/cores.h"
#include "launcher/facts/gpus.h"
#include "launcher/facts/memory.h"
#include "launcher/facts/mig.h"
#include "launcher/facts/topology.h"
#include "src/base/text.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::launcher;

namespace {

struct Slot {
  const char* name;
  const char* path;
};
// The group of "cgroup" as the corpus has it, in v2 and in v1.
constexpr Slot kFiles[] = {
    {"cgroup", "proc/self/cgroup"},
    {"mounts", "proc/self/mounts"},
    {"meminfo", "proc/meminfo"},
    {"cpu.max", "sys/fs/cgroup/job/cpu.max"},
    {"memory.max", "sys/fs/cgroup/job/memory.max"},
    {"quota", "sys/fs/cgroup/cpu/cpu.cfs_quota_us"},
    {"period", "sys/fs/cgroup/cpu/cpu.cfs_period_us"},
    {"gpu", "proc/driver/nvidia/gpus/0000:3b:00.0/information"},
    {"access", "proc/driver/nvidia/capabilities/gpu0/mig/gi7/access"},
    {"node", "sys/devices/system/node/node1/cpulist"},
    {"siblings", "sys/devices/system/cpu/cpu0/topology/thread_siblings_list"},
    {"package", "sys/devices/system/cpu/cpu0/topology/physical_package_id"},
    {"port", "sys/class/infiniband/mlx5_0/ports/1/state"},
    {"place", "sys/class/infiniband/mlx5_0/device/numa_node"}};

// A folder of made-up files, and this process in it.
class Host {
 public:
  Host() {
    // In memory where that can be had: thousands of files are written.
    path_ = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    path_ += "/hvrun-facts-fuzz-XXXXXX";
    HV_CHECK(::mkdtemp(path_.data()) != nullptr, "a folder");
    HV_CHECK(::chdir(path_.c_str()) == 0, "into it");
    for (const Slot& slot : kFiles)
      std::filesystem::create_directories(std::filesystem::path(slot.path).parent_path());
  }
  ~Host() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  // A mutation changes one file as a rule: the others stay.
  void write(const Slot& slot, const std::string& text) {
    const auto [known, is_new] = written_.emplace(slot.path, text);
    if (!is_new && known->second == text) return;
    known->second = text;
    std::ofstream(slot.path, std::ios::binary | std::ios::trunc) << text;
  }

 private:
  std::map<std::string, std::string> written_;
  std::string path_;
};

void write_files(Host& host, const std::string& text) {
  std::string file;
  std::vector<std::string> contents(std::size(kFiles));
  std::size_t current = 0;
  for (const std::string& line : split(text, '\n')) {
    const auto* const slot =
        std::find_if(std::begin(kFiles), std::end(kFiles),
                     [&](const Slot& known) { return line == std::string("== ") + known.name; });
    if (slot == std::end(kFiles)) {
      contents[current] += line + "\n";
    } else {
      current = static_cast<std::size_t>(slot - std::begin(kFiles));
    }
  }
  for (std::size_t i = 0; i < contents.size(); ++i) host.write(kFiles[i], contents[i]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Host host;
  const std::string text(fuzz::view(data, size));
  write_files(host, text);
  const std::string root = ".";
  const auto cores = quota_cores(root);
  HV_CHECK(!cores || (*cores >= 1 && *cores <= 1u << 20), "a number of cores");
  HV_CHECK(usable_cores(root) >= 1, "a core at least");
  HV_CHECK(memory_bytes(root) <= std::uint64_t{INT64_MAX}, "a size of memory");
  for (const char* controller : {"cpu", "memory"})
    for (const std::string& folder : own_cgroup_folders(root, controller))
      HV_CHECK(folder.compare(0, root.size(), root) == 0, "below the root");
  HV_CHECK(read_gpus(root).size() <= 1, "no more than there are");
  HV_CHECK(has_mig_instance(0, root), "an instance");
  (void)may_open_mig(0, 7, 0, root);
  std::size_t threads = 0;
  for (const wire::Core& core : read_cores({0xff, 1}, root)) {
    HV_CHECK(!core.threads.empty(), "a thread at least");
    HV_CHECK(core.package < kMostCores, "a package that there may be");
    threads += core.threads.size();
  }
  HV_CHECK(threads == 9, "every usable thread once");
  const auto adapters = read_rdma(root);
  HV_CHECK(adapters.size() <= 1, "no more than there are");
  for (const wire::RdmaAdapter& adapter : adapters)
    HV_CHECK(adapter.node == wire::kNoNode || (adapter.node >= 0 && adapter.node < int{kMostCores}),
             "a node that there may be, or none");
  const auto cores_named = parse_core_list(text);
  HV_CHECK(!cores_named || cores_named->size() <= 2 * 65536, "no more than there may be");
  const auto limit = parse_cpu_max(text);
  HV_CHECK(!limit || *limit > 0, "a limit is above nothing");
  (void)parse_gpu("0000:3b:00.0", text);
  return 0;
}
