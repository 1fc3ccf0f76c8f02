// Tests of launcher/agent/postmortem/memory_kills: did the kernel end it for want of memory?
// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/postmortem/memory_kills.h"

#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/unit/temporary_folder.h"

using namespace hv::launcher;
using hv::ExitStatus;
using hv::wire::OutOfMemory;

namespace {

const ExitStatus kKilled{true, SIGKILL}, kShells{false, 137}, kOne{false, 1};

// A host's files, of cgroup v2 or v1.
struct MemoryHost {
  hv::tests::TemporaryFolder folder;
  std::string root = folder.path(), group;
  MemoryKills kills;

  explicit MemoryHost(int version, bool has_log = true,
                      const std::string& pids = "pid:[4026531836]") {
    group = root + "/sys/fs/cgroup/job";
    std::filesystem::create_directories(group);
    std::filesystem::create_directories(root + "/proc/self/ns");
    std::filesystem::create_directories(root + "/dev");
    std::filesystem::create_symlink(pids, root + "/proc/self/ns/pid");
    if (has_log) write(root + "/dev/kmsg", "6,1,1,-;Out of memory: Killed process 7 (earlier)\n");
    write(root + "/proc/self/mounts", version == 2 ? "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"
                                                   : "c /sys/fs/cgroup cgroup rw,memory 0 0\n");
    write(root + "/proc/self/cgroup", version == 2 ? "0::/job\n" : "4:memory:/job\n");
    write(group + (version == 2 ? "/memory.max" : "/memory.limit_in_bytes"), "536870912\n");
  }
  static void write(const std::string& path, const std::string& text, bool appends = false) {
    std::ofstream(path, appends ? std::ios::app : std::ios::trunc) << text;
  }
  void count(int kills_so_far) const {
    const std::string number = std::to_string(kills_so_far);
    if (std::filesystem::exists(group + "/memory.max")) {
      write(group + "/memory.events",
            "low 0\nmax 9\noom 3\noom_kill " + number + "\noom_group_kill 0\n");
    } else {
      write(group + "/memory.oom_control",
            "oom_kill_disable 0\nunder_oom 0\noom_kill " + number + "\n");
    }
  }
  void log(const std::string& message) const {
    write(root + "/dev/kmsg", "3,2,9,-;" + message + "\n", true);
  }
};

}  // namespace

TEST_CASE("a killed process is found in the kernel's message, and in no other line") {
  CHECK(killed_process("Out of memory: Killed process 12 (python3) total-vm:4kB") == 12);
  CHECK(killed_process("Memory cgroup out of memory: Killed process 345 (a (b)) anon") == 345);
  for (const char* text : {"", "Killed process ", "Killed process x", "Killed process 0",
                           "Killed process 99999999999999999999", "process 12"})
    CHECK(!killed_process(text));
  CHECK(oom_kills("oom 1\noom_kill 4\noom_group_kill 9\n") == 4);
  CHECK(!oom_kills("oom_kill x\n"));
  CHECK(!oom_kills("oom 1\n"));
}

TEST_CASE("a kill that the cgroup counts and the log names is this rank's") {
  for (const int version : {1, 2}) {
    MemoryHost host(version);
    host.count(2);
    host.kills.begin("", host.root);
    host.count(3);
    host.log("Memory cgroup out of memory: Killed process 41 (python3) total-vm:9kB");
    const auto found = host.kills.judge(41, kKilled);
    CHECK(found.out_of_memory == OutOfMemory::kThisRank);
    CHECK(found.memory == "cgroup " + host.group +
                              ": limit 512 MiB, 1 oom_kill since the job began; Memory cgroup out "
                              "of memory: Killed process 41 (python3) total-vm:9kB");
  }
}

TEST_CASE("a kill that the log assigns to another process did not end the rank") {
  MemoryHost host(2);
  host.count(0);
  host.kills.begin("", host.root);
  host.count(1);
  host.log("Out of memory: Killed process 42 (worker)");
  CHECK(host.kills.judge(41, kKilled).out_of_memory == OutOfMemory::kBesideIt);
  CHECK(host.kills.judge(41, kOne).out_of_memory == OutOfMemory::kBesideIt);
  CHECK(host.kills.judge(42, kKilled).out_of_memory == OutOfMemory::kThisRank);
}

TEST_CASE("without the log the counter decides, and pids of another namespace are ignored") {
  for (const bool has_log : {false, true}) {
    MemoryHost host(2, has_log, "pid:[4026532999]");
    host.count(0);
    host.kills.begin("", host.root);
    CHECK(host.kills.judge(41, kKilled).out_of_memory == OutOfMemory::kNo);
    host.log("Out of memory: Killed process 41 (somebody else)");
    CHECK(host.kills.judge(41, kKilled).out_of_memory == OutOfMemory::kNo);
    host.count(1);
    CHECK(host.kills.judge(41, kKilled).out_of_memory == OutOfMemory::kThisRank);
    CHECK(host.kills.judge(41, kShells).out_of_memory == OutOfMemory::kBesideIt);
  }
}

TEST_CASE("an earlier kill is not the cause of a rank's end now") {
  MemoryHost host(2, false);
  host.count(0);
  host.kills.begin("", host.root);
  host.kills.poll();
  host.count(1);
  host.kills.poll();
  CHECK(host.kills.judge(41, kKilled).out_of_memory == OutOfMemory::kThisRank);
  host.kills.poll();
  CHECK(host.kills.judge(41, kKilled).out_of_memory == OutOfMemory::kBesideIt);
  host.count(2);
  CHECK(host.kills.judge(41, kKilled).out_of_memory == OutOfMemory::kThisRank);
}

TEST_CASE("the ranks' own cgroup is read before the agent's, which is the fallback") {
  MemoryHost host(2);
  host.count(0);
  const std::string leaf = host.group + "/leaf";
  std::filesystem::create_directories(leaf);
  host.kills.begin(leaf, host.root);
  host.count(1);
  CHECK(host.kills.judge(41, kOne).memory.find("cgroup " + host.group + ": ") == 0);
  MemoryHost::write(leaf + "/memory.events", "oom_kill 0\n");
  host.kills.begin(leaf, host.root);
  host.count(2);
  CHECK(host.kills.judge(41, kOne).out_of_memory == OutOfMemory::kNotAsked);
  MemoryHost::write(leaf + "/memory.events", "oom_kill 1\n");
  CHECK(host.kills.judge(41, kOne).memory ==
        "cgroup " + leaf + ": limit 512 MiB of " + host.group + ", 1 oom_kill since the job began");
}

TEST_CASE("a user's kill is reported as not the kernel's, and one before the job is ignored") {
  MemoryHost host(2);
  host.count(5);
  host.kills.begin("", host.root);
  const auto found = host.kills.judge(7, kKilled);
  CHECK(found.out_of_memory == OutOfMemory::kNo);
  CHECK(found.memory == "the kernel's log does not name it");
  CHECK(host.kills.judge(7, kOne).out_of_memory == OutOfMemory::kNotAsked);
}

TEST_CASE("an unreadable log and counter are reported") {
  MemoryHost host(2, false);
  host.kills.begin("", host.root);
  const auto found = host.kills.judge(7, kKilled);
  CHECK(found.out_of_memory == OutOfMemory::kUnknown);
  CHECK(found.memory ==
        "neither its log (/dev/kmsg: No such file or directory) nor a count of its cgroup can be "
        "read");
}
