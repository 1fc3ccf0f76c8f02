// Memory, load, ports and limits of made-up hosts, and of this one.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <unistd.h>

#include "launcher/probes/limits.h"
#include "launcher/probes/load.h"
#include "launcher/probes/memory.h"
#include "src/net/socket.h"
#include "tests/unit/probes/asked.h"

namespace hv::launcher {
namespace {

using tests::asked;
using tests::TemporaryFolder;
using tests::write_file;

constexpr std::uint64_t kKiB = 1024, kMiB = kKiB * 1024;

TEST_CASE("memory is what the machine has left") {
  const TemporaryFolder root;
  write_file(root / "proc/meminfo",
             "MemTotal:       8388608 kB\nMemFree:        10 kB\nMemAvailable:   4194304 kB\n");
  const wire::MemoryFacts facts = memory_facts(root.path());
  CHECK(facts.total_bytes == 8192 * kMiB);
  CHECK(facts.available_bytes == 4096 * kMiB);
  CHECK(facts.cgroup_bytes == wire::kNoLimit);
  CHECK(facts.shm_bytes == 0);
  write_file(root / "proc/meminfo", "MemTotal: 8388608 kB\nMemFree: 1024 kB\nCached: 2048 kB\n");
  CHECK(memory_facts(root.path()).available_bytes == 3 * kMiB);
}

TEST_CASE("memory is no more than a cgroup above leaves, files read there not counted") {
  const TemporaryFolder root;
  write_file(root / "proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n");
  write_file(root / "proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
  write_file(root / "proc/self/cgroup", "0::/job/step\n");
  const std::string job = root / "sys/fs/cgroup/job";
  write_file(job + "/memory.max", std::to_string(1024 * kMiB) + "\n");
  write_file(job + "/memory.current", std::to_string(1000 * kMiB) + "\n");
  write_file(job + "/memory.stat", "anon 1\ninactive_file " + std::to_string(100 * kMiB) +
                                       "\nactive_file " + std::to_string(50 * kMiB) + "\n");
  write_file(job + "/step/memory.max", "max\n");
  write_file(job + "/step/memory.current", std::to_string(5 * kMiB) + "\n");
  const wire::MemoryFacts facts = memory_facts(root.path());
  CHECK(facts.cgroup_bytes == 1024 * kMiB);
  CHECK(facts.available_bytes == 174 * kMiB);
}

std::string process(const std::string& pid, const std::string& name, int parent, int ticks,
                    int started = 7) {
  return pid + " (" + name + ") S " + std::to_string(parent) + " 1 1 0 -1 0 0 0 0 0 " +
         std::to_string(ticks) + " 0 9999 9999 20 0 1 0 " + std::to_string(started) + " 0 0\n";
}

TEST_CASE("load leaves out hvrun's programs and the children of its probes") {
  const TemporaryFolder root;
  const auto sample = [&root](int ticks, int all) {
    write_file(root / "proc/stat", "cpu  " + std::to_string(all) +
                                       " 0 0 500 70 0 0 0 0 0\ncpu0 1 2\ncpu1 1 2\nintr 5\n");
    write_file(root / "proc/10/stat", process("10", "a (b) c", 1, ticks));
    write_file(root / "proc/11/stat", process("11", "hvrun-probe", 1, ticks));
    write_file(root / "proc/12/stat", process("12", "python3", 11, ticks));
    write_file(root / "proc/13/stat", process("13", "hvrun-agent", 1, ticks));
    write_file(root / "proc/14/stat", process("14", "rank", 13, ticks / 4));
    return load_sample(root.path());
  };
  const LoadSample before = sample(0, 0);
  const LoadSample after = sample(40, 400);
  const wire::LoadFacts facts = load_between(before, after, 50, root.path());
  CHECK(facts.cores == 2);
  CHECK(facts.busy_cores == doctest::Approx(1.0));  // 40 and 10 of 50
  CHECK(facts.busiest.rfind("a (b) c (pid 10, ", 0) == 0);
  CHECK(facts.busiest.find(") 0.8 cores") != std::string::npos);
  // No more than the cores themselves were busy.
  CHECK(load_between(before, sample(40, 25), 50, root.path()).busy_cores == doctest::Approx(0.5));
}

TEST_CASE("load: a process that reuses a pid counts with all of its time") {
  const TemporaryFolder root;
  write_file(root / "proc/stat", "cpu 100 0\ncpu0 1\n");
  write_file(root / "proc/10/stat", process("10", "old", 1, 30));
  const LoadSample before = load_sample(root.path());
  write_file(root / "proc/stat", "cpu 200 0\ncpu0 1\n");
  write_file(root / "proc/10/stat", process("10", "new", 1, 40, 8));
  const wire::LoadFacts facts = load_between(before, load_sample(root.path()), 50, root.path());
  CHECK(facts.busy_cores == doctest::Approx(0.8));
}

TEST_CASE("load: the slowest of several governors is reported") {
  const TemporaryFolder root;
  CHECK(slowest_governor(root.path()) == "");
  const auto set = [&root](const std::string& cpu, const std::string& governor) {
    write_file(root / ("sys/devices/system/cpu/" + cpu + "/cpufreq/scaling_governor"),
               governor + "\n");
  };
  set("cpu0", "performance");
  CHECK(slowest_governor(root.path()) == "performance");
  set("cpu1", "schedutil");
  CHECK(slowest_governor(root.path()) == "schedutil");
  set("cpu2", "powersave");
  CHECK(slowest_governor(root.path()) == "powersave");
}

TEST_CASE("ports with a listener count as taken, and held ports do not") {
  UniqueFd listener, holder;
  std::uint16_t port = 0, held = 0;
  REQUIRE(listen_tcp(0, &listener, &port).ok());
  REQUIRE(hold_tcp_port(0, &holder, &held).ok());
  const auto told = [](int number) {
    wire::CheckRequest request;
    request.port_range = std::to_string(number);
    return asked("ports", request).ports;
  };
  CHECK(told(port).ports == 1);
  CHECK(told(port).taken == 1);
  CHECK(told(held).taken == 0);
  CHECK(asked("ports", {}).ports.ports == 0);
}

TEST_CASE("limits: a cgroup that leaves fewer processes than the user's limit counts instead") {
  const TemporaryFolder root;
  write_file(root / "proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
  write_file(root / "proc/self/cgroup", "0::/pod/step\n");
  write_file(root / "sys/fs/cgroup/pod/step/pids.max", "max\n");
  write_file(root / "sys/fs/cgroup/pod/step/pids.current", "3\n");
  write_file(root / "sys/fs/cgroup/pod/pids.max", "100\n");
  write_file(root / "sys/fs/cgroup/pod/pids.current", "90\n");
  wire::LimitFacts facts;
  narrow_to_cgroups(root.path(), &facts);
  CHECK(facts.processes == 100);
  CHECK(facts.processes_of_user == 90);
  wire::LimitFacts tighter;
  tighter.processes = 1000;
  tighter.processes_of_user = 995;
  narrow_to_cgroups(root.path(), &tighter);
  CHECK(tighter.processes == 1000);
  CHECK(tighter.processes_of_user == 995);
}

TEST_CASE("limits count the threads of this process among its user's") {
  const wire::LimitFacts facts = asked("limits", {}).limits;
  CHECK(facts.open_files > 0);
  CHECK(processes_of_user() >= 1);
  if (facts.processes != wire::kNoLimit) CHECK(facts.processes_of_user >= 1);
  if (::getuid() == 0) CHECK(facts.processes == wire::kNoLimit);
}

TEST_CASE("load and memory of this machine are reported") {
  const wire::LoadFacts load = asked("load", {}).load;
  CHECK(load.cores >= 1);
  CHECK(load.busy_cores <= load.cores + 1.0);
  const wire::MemoryFacts memory = asked("memory", {}).memory;
  CHECK(memory.total_bytes > 0);
  CHECK(memory.available_bytes > 0);
  CHECK(memory.available_bytes <= memory.total_bytes);
}

}  // namespace

TEST_CASE("answers of probes are separated, and one that is cut short is left out") {
  const auto framed = [](std::uint64_t probe, const std::string& text) {
    const std::uint64_t head[] = {probe, text.size()};
    return std::string(reinterpret_cast<const char*>(head), sizeof head) + text;
  };
  const std::string bytes = framed(2, "limits") + framed(0, "") + framed(1, "program");
  using Answers = std::vector<std::pair<std::size_t, std::string_view>>;
  CHECK((parse_probe_answers(bytes) == Answers{{2, "limits"}, {0, ""}, {1, "program"}}));
  CHECK((parse_probe_answers(std::string_view(bytes).substr(0, bytes.size() - 1)) ==
         Answers{{2, "limits"}, {0, ""}}));
  CHECK(parse_probe_answers(framed(99, "x")).empty());
  CHECK(parse_probe_answers("abc").empty());
}

}  // namespace hv::launcher
