// What a dry run asks an agent, and what that tells: facts of its host, each as it is, without a
// judgement (launcher/check has those).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/wire/messages.h"

namespace hv::wire {

constexpr std::size_t kMaxProbeBytes = 1 << 20;  // of one probe's answer
constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

// A probe that answered nothing: which one, and why. What it would have told is as if not asked.
struct UnansweredProbe {
  std::string probe;  // "program"
  std::string reason;
  void fields(auto& a) { a(probe, reason); }
};

// A folder that a job uses there.
struct FolderFacts {
  std::string role;  // "working directory", "temporary directory"
  std::string path;
  std::string problem;  // why it cannot be used; empty: it can
  std::string device;   // "/dev/sda1", "server:/export", "tmpfs": as it is mounted
  std::string kind;     // of its file system: "nfs4", "ext4"
  std::uint64_t inode = 0;
  std::uint64_t free_bytes = 0;  // that this user may fill; kNoLimit: read-only, or not told
  std::uint64_t free_files = 0;  // inodes; kNoLimit: the file system has no number of them
  void fields(auto& a) { a(role, path, problem, device, kind, inode, free_bytes, free_files); }
};

struct PythonFacts {
  std::string executable;  // as it calls itself
  std::string version;     // "3.11.2"
  std::string prefix;      // of its environment
  // Name, version; of torch, hvrun, ... "libhvrun" is the library that hvrun would open: a digest.
  std::vector<std::pair<std::string, std::string>> packages;
  void fields(auto& a) { a(executable, version, prefix, packages); }
};

// A program of the job, by its place there.
struct ProgramFacts {
  std::string path;         // as found; empty: it was not, or its directory is not there
  std::string problem;      // why it cannot be run; empty: it can
  std::string advice;       // what to try then
  std::string digest;       // of its content; empty: too large to be read in time
  std::string interpreter;  // of a script, as found; or the dynamic loader
  std::string script;       // that it is to run, "train.py" of "python3 train.py", as a path there
  std::string script_digest;
  std::vector<std::string> missing_libraries;  // "libcudart.so.13", "GLIBC_2.38 of libc.so.6"
  std::vector<std::pair<std::string, std::string>> libraries;  // name, file; sorted by name
  std::vector<PythonFacts> python;                             // where it is one, or its script
  void fields(auto& a) {
    a(path, problem, advice, digest, interpreter, script, script_digest, missing_libraries,
      libraries, python);
  }
};

// Soft limits, which ranks inherit. kNoLimit: none, or none that binds this user.
struct LimitFacts {
  std::uint64_t locked_bytes = kNoLimit;
  std::uint64_t open_files = kNoLimit;
  std::uint64_t stack_bytes = kNoLimit;
  std::uint64_t processes = kNoLimit;  // of its user, or in its cgroup where that leaves fewer
  // That count for that limit, each thread for itself; 0: there is none.
  std::uint64_t processes_of_user = 0;
  void fields(auto& a) { a(locked_bytes, open_files, stack_bytes, processes, processes_of_user); }
};

struct MemoryFacts {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;      // MemAvailable, within the cgroup's limit
  std::uint64_t cgroup_bytes = kNoLimit;  // the least limit above the agent
  std::uint64_t shm_bytes = 0;            // size of /dev/shm; 0: there is none
  std::uint64_t shm_free_bytes = 0;
  void fields(auto& a) { a(total_bytes, available_bytes, cgroup_bytes, shm_bytes, shm_free_bytes); }
};

struct LoadFacts {
  std::uint32_t cores = 0;  // of the machine, as its kernel schedules: hardware threads
  double busy_cores = 0;    // of these, by others than hvrun, over half a second
  std::string busiest;      // "python3 (pid 12, ada) 3.9 cores"; empty: none above half a core
  std::string governor;     // of the CPUs, "performance"; of several the slowest; empty: not told
  void fields(auto& a) { a(cores, busy_cores, busiest, governor); }
};

struct PortFacts {
  std::string range;        // as asked; empty: any
  std::uint32_t ports = 0;  // in it
  std::uint32_t taken = 0;  // that nobody may listen on
  void fields(auto& a) { a(range, ports, taken); }
};

struct InterfaceFacts {
  std::string name;
  std::vector<std::string> addresses;
  std::uint32_t mtu = 0;
  std::uint32_t megabits = 0;  // of its link; 0: not told
  bool is_up = false;
  void fields(auto& a) { a(name, addresses, mtu, megabits, is_up); }
};

struct RdmaPortFacts {
  std::string adapter;  // "mlx5_0"
  std::uint32_t port = 0;
  std::string state;     // "ACTIVE", "DOWN"
  std::string physical;  // "LinkUp", "Disabled"
  void fields(auto& a) { a(adapter, port, state, physical); }
};

struct NetworkFacts {
  std::vector<InterfaceFacts> interfaces;
  std::vector<RdmaPortFacts> rdma;
  void fields(auto& a) { a(interfaces, rdma); }
};

struct CheckRequest {
  static constexpr Type kType = Type::kCheckRequest;
  double timeout_s = 5;                     // of each probe
  std::vector<std::string> probes;          // by name, those to be answered; empty: all
  std::vector<Program> programs;            // without argv: none is named
  std::vector<std::string> environment;     // NAME=VALUE, of every rank
  std::vector<std::string> host_variables;  // as in Launch
  std::string port_range;                   // as in SetupRequest
  void fields(auto& a) { a(timeout_s, probes, programs, environment, host_variables, port_range); }
};
struct CheckReply {
  static constexpr Type kType = Type::kCheckReply;
  std::vector<UnansweredProbe> unanswered;
  std::vector<FolderFacts> folders;    // of each program its working directory, then others
  std::vector<ProgramFacts> programs;  // in the order of the request's
  LimitFacts limits;
  MemoryFacts memory;
  LoadFacts load;
  PortFacts ports;
  NetworkFacts network;
  void fields(auto& a) { a(unanswered, folders, programs, limits, memory, load, ports, network); }
};

// Measure the way to these hosts, one address each, after the proofs of an address probe.
struct PairRequest {
  static constexpr Type kType = Type::kPairRequest;
  std::vector<ProbeTarget> targets;
  double timeout_s = 5;
  void fields(auto& a) { a(targets, timeout_s); }
};
struct PairMeasure {
  std::uint32_t host_id = 0;
  std::string problem;         // why nothing, or not all, was measured
  double round_trip_us = 0;    // the median of small exchanges; 0: not measured, as the next ones
  double megabytes_per_s = 0;  // one connection, in one direction
  double resent_share = 0;     // of its segments
  std::uint32_t segment_bytes = 0;  // the largest that it sends
  bool is_stuck = false;            // small packets pass, and full-size ones do not
  void fields(auto& a) {
    a(host_id, problem, round_trip_us, megabytes_per_s, resent_share, segment_bytes, is_stuck);
  }
};
struct PairReply {
  static constexpr Type kType = Type::kPairReply;
  std::vector<PairMeasure> measures;
  void fields(auto& a) { a(measures); }
};

}  // namespace hv::wire
