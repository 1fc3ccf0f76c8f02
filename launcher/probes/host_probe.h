// What an agent looks at for a check: one file a probe. Judgements are launcher/check's affair.
// SPDX-License-Identifier: Apache-2.0
//
// All run in one process, "hvrun-agent --probe", whose environment is the ranks', each on a thread
// of its own. So one may take its time, up to a deadline, and may hang: in a file system whose
// server is gone, say. The others' answers are there by then. None writes anywhere.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/facts/process_table.h"
#include "src/base/environment.h"
#include "src/wire/check.h"

namespace hv::launcher {

struct HostProbe {
  const char* name;
  // Fills its part of the reply, and nothing else of it but `unanswered`, with what it could not
  // learn. environment: the ranks'.
  void (*look)(const wire::CheckRequest& request, const Environment& environment,
               wire::CheckReply* reply);
  // Takes over that part of another reply.
  void (*take)(wire::CheckReply&& from, wire::CheckReply* to);
};

const std::vector<HostProbe>& host_probes();
// names: wire::CheckRequest::probes.
bool is_wanted(const HostProbe& probe, const std::vector<std::string>& names);

constexpr const char* kProbe = "--probe";
constexpr const char* kProbeName = "hvrun-probe";  // of such a process
// hvrun-agent --probe: the request on standard input, a file; answers on standard output, each as
// soon as it is there. Returns the exit code.
int run_host_probes();

// What has come of those answers: (index in host_probes(), an encoded CheckReply). The last one may
// have been cut short; it is left out.
std::vector<std::pair<std::size_t, std::string_view>> parse_probe_answers(std::string_view bytes);

// Folders that a job uses on this host: each program's working directory, and the temporary one.
// Hangs where one lies on a file system whose server is gone.
void look_at_folders(const wire::CheckRequest& request, const Environment& environment,
                     wire::CheckReply* reply);

struct Mount {
  std::string device;  // "/dev/sda1", "server:/export", "tmpfs"
  std::string kind;    // "ext4", "nfs4"
};
// What an absolute path without links lies on, by the text of /proc/self/mountinfo.
std::optional<Mount> mount_of(const std::string& path, const std::string& mounts);

// What a process of this user may have: soft limits, which ranks inherit, and those of cgroups.
void look_at_limits(const wire::CheckRequest& request, const Environment& environment,
                    wire::CheckReply* reply);

// Of this process's user, each thread for itself. Looks at all that run.
std::uint64_t processes_of_user();

// What the agent's cgroups allow of processes, where that leaves fewer. root: put before paths, for
// tests.
void narrow_to_cgroups(const std::string& root, wire::LimitFacts* facts);

// What keeps this host's cores busy, and how fast they may run.
// Takes half a second.
void look_at_load(const wire::CheckRequest& request, const Environment& environment,
                  wire::CheckReply* reply);

struct LoadSample {
  std::uint32_t cores = 0;
  std::uint64_t busy_ticks = 0;  // of all cores together
  std::map<pid_t, ProcessEntry> processes;
};
// root: put before every path, for tests.
LoadSample load_sample(const std::string& root);
// By others than hvrun's programs and what its probes run. ticks: that one core has had between.
wire::LoadFacts load_between(const LoadSample& before, const LoadSample& after, double ticks,
                             const std::string& root);
// The slowest of those that the CPUs have; "" where none is told.
std::string slowest_governor(const std::string& root);

// Memory that ranks could have now, and what /dev/shm holds.
void look_at_memory(const wire::CheckRequest& request, const Environment& environment,
                    wire::CheckReply* reply);

// root: put before every path, for tests.
wire::MemoryFacts memory_facts(const std::string& root);

// Interfaces with their MTU and speed, and the ports of RDMA adapters, up or not.
void look_at_network(const wire::CheckRequest& request, const Environment& environment,
                     wire::CheckReply* reply);

// root: put before every path, for tests.
wire::NetworkFacts read_network(const std::string& root = "");

// How many ports of HVRUN_PORT_RANGE somebody has already.
void look_at_ports(const wire::CheckRequest& request, const Environment& environment,
                   wire::CheckReply* reply);

// The Python that the job's programs are, or are run by, as it tells of itself: its version, and
// those of packages, by their metadata. Nothing of the job is imported.
void look_at_python(const wire::CheckRequest& request, const Environment& environment,
                    wire::CheckReply* reply);

// Of what such a Python has written; none: that is no answer. "libhvrun" has a file's name still.
std::optional<wire::PythonFacts> parse_python_answer(const std::string& text);

}  // namespace hv::launcher
