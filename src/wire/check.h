// The messages of a dry run: the agent reports facts of its host, without judging them
// (launcher/check does).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/wire/messages.h"

namespace hv::wire {

constexpr std::size_t kMaxProbeBytes = 1 << 20;  // limit for the reply of one probe
constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

// A probe without an answer. Its fields of CheckReply keep their defaults.
struct UnansweredProbe {
  std::string probe;  // "program"
  std::string reason;
  void fields(auto& a) { a(probe, reason); }
};

// A directory of the host that the job uses.
struct FolderFacts {
  std::string role;  // "working directory", "temporary directory"
  std::string path;
  std::string problem;  // why it cannot be used; empty: it can
  std::string device;   // what is mounted: "/dev/sda1", "server:/export", "tmpfs"
  std::string kind;     // type of the file system: "nfs4", "ext4"
  std::uint64_t inode = 0;
  std::uint64_t free_bytes = 0;  // for this user; kNoLimit: read-only, or not known
  std::uint64_t free_files = 0;  // inodes; kNoLimit: the file system does not count them
  void fields(auto& a) { a(role, path, problem, device, kind, inode, free_bytes, free_files); }
};

struct PythonFacts {
  std::string executable;  // sys.executable
  std::string version;     // "3.11.2"
  std::string prefix;      // sys.prefix: its virtual environment
  // Name and version of torch, hvrun, ...; "libhvrun" has a digest of the library that the package
  // hvrun would open.
  std::vector<std::pair<std::string, std::string>> packages;
  void fields(auto& a) { a(executable, version, prefix, packages); }
};

// A program of the job on this host.
struct ProgramFacts {
  std::string path;         // empty: not found, or its directory is missing
  std::string problem;      // why it cannot be run; empty: it can
  std::string advice;       // remedy for the problem
  std::string digest;       // of its content; empty: too large to be read in time
  std::string interpreter;  // path of a script's interpreter, or of the dynamic loader
  std::string script;       // path of its script: "train.py" in "python3 train.py"
  std::string script_digest;
  std::vector<std::string> missing_libraries;  // "libcudart.so.13", "GLIBC_2.38 of libc.so.6"
  std::vector<std::pair<std::string, std::string>> libraries;  // name, file; sorted by name
  std::vector<PythonFacts> python;                             // if it is a Python, or its script
  void fields(auto& a) {
    a(path, problem, advice, digest, interpreter, script, script_digest, missing_libraries,
      libraries, python);
  }
};

// Soft limits, which ranks inherit. kNoLimit: no limit applies to this user.
struct LimitFacts {
  std::uint64_t locked_bytes = kNoLimit;
  std::uint64_t open_files = kNoLimit;
  std::uint64_t stack_bytes = kNoLimit;
  std::uint64_t processes = kNoLimit;  // of this user, or of the cgroup where that is lower
  // Processes and threads that count towards `processes`; 0: not known.
  std::uint64_t processes_of_user = 0;
  void fields(auto& a) { a(locked_bytes, open_files, stack_bytes, processes, processes_of_user); }
};

struct MemoryFacts {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;      // MemAvailable, within the cgroup's limit
  std::uint64_t cgroup_bytes = kNoLimit;  // the lowest limit of the agent's cgroups
  std::uint64_t shm_bytes = 0;            // size of /dev/shm; 0: there is none
  std::uint64_t shm_free_bytes = 0;
  void fields(auto& a) { a(total_bytes, available_bytes, cgroup_bytes, shm_bytes, shm_free_bytes); }
};

struct LoadFacts {
  std::uint32_t cores = 0;  // hardware threads of the machine
  double busy_cores = 0;    // used by processes other than hvrun's, over half a second
  std::string busiest;      // "python3 (pid 12, ada) 3.9 cores"; empty: none above half a core
  std::string governor;     // of the CPUs, "performance"; the slowest of several; empty: not known
  void fields(auto& a) { a(cores, busy_cores, busiest, governor); }
};

struct PortFacts {
  std::string range;        // as requested; empty: any
  std::uint32_t ports = 0;  // in the range
  std::uint32_t taken = 0;  // in use: no process may listen on them
  void fields(auto& a) { a(range, ports, taken); }
};

struct InterfaceFacts {
  std::string name;
  std::vector<std::string> addresses;
  std::uint32_t mtu = 0;
  std::uint32_t megabits = 0;  // speed of its link; 0: not known
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

// A name that the host was asked to resolve.
struct NameFacts {
  std::string name;
  std::vector<std::string> addresses;  // empty: it has none
  std::string hosts_line;  // "line 2: 127.0.1.1 node1", of /etc/hosts; empty: it has no such line
  void fields(auto& a) { a(name, addresses, hosts_line); }
};

struct CheckRequest {
  static constexpr Type kType = Type::kCheckRequest;
  double timeout_s = 5;                     // for each probe
  std::vector<std::string> probes;          // names of the requested probes; empty: all
  std::vector<Program> programs;            // without argv: the user named no program
  std::vector<std::string> environment;     // NAME=VALUE, of every rank
  std::vector<std::string> host_variables;  // as in Launch
  std::string port_range;                   // as in SetupRequest
  std::vector<std::string> names{};         // to resolve, after the host's own
  void fields(auto& a) {
    a(timeout_s, probes, programs, environment, host_variables, port_range, names);
  }
};
struct CheckReply {
  static constexpr Type kType = Type::kCheckReply;
  std::vector<UnansweredProbe> unanswered;
  std::vector<FolderFacts> folders;    // the working directory of each program, then others
  std::vector<ProgramFacts> programs;  // in the order of the request's
  LimitFacts limits;
  MemoryFacts memory;
  LoadFacts load;
  PortFacts ports;
  NetworkFacts network;
  std::vector<NameFacts> names;  // the host's own name, then the request's
  void fields(auto& a) {
    a(unanswered, folders, programs, limits, memory, load, ports, network, names);
  }
};

// Measures the path to these hosts, one address each. Both ends prove the job's key first.
struct PairRequest {
  static constexpr Type kType = Type::kPairRequest;
  std::vector<ProbeTarget> targets;
  double timeout_s = 5;
  void fields(auto& a) { a(targets, timeout_s); }
};
struct PairMeasure {
  std::uint32_t host_id = 0;
  std::string problem;              // why not everything was measured; empty: it was
  double round_trip_us = 0;         // median of small exchanges; 0, here and below: not measured
  double megabytes_per_s = 0;       // one connection, in one direction
  double resent_share = 0;          // share of its segments that were sent again
  std::uint32_t segment_bytes = 0;  // its largest segment
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
