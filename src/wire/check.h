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
  template <class A>
  void fields(A& a) {
    a(probe);
    a(reason);
  }
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
  template <class A>
  void fields(A& a) {
    a(role);
    a(path);
    a(problem);
    a(device);
    a(kind);
    a(inode);
    a(free_bytes);
    a(free_files);
  }
};

struct PythonFacts {
  std::string executable;  // as it calls itself
  std::string version;     // "3.11.2"
  std::string prefix;      // of its environment
  // Name, version; of torch, hvrun, ... "libhvrun" is the library that hvrun would open: a digest.
  std::vector<std::pair<std::string, std::string>> packages;
  template <class A>
  void fields(A& a) {
    a(executable);
    a(version);
    a(prefix);
    a(packages);
  }
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
  template <class A>
  void fields(A& a) {
    a(path);
    a(problem);
    a(advice);
    a(digest);
    a(interpreter);
    a(script);
    a(script_digest);
    a(missing_libraries);
    a(libraries);
    a(python);
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
  template <class A>
  void fields(A& a) {
    a(locked_bytes);
    a(open_files);
    a(stack_bytes);
    a(processes);
    a(processes_of_user);
  }
};

struct MemoryFacts {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;      // MemAvailable, within the cgroup's limit
  std::uint64_t cgroup_bytes = kNoLimit;  // the least limit above the agent
  std::uint64_t shm_bytes = 0;            // size of /dev/shm; 0: there is none
  std::uint64_t shm_free_bytes = 0;
  template <class A>
  void fields(A& a) {
    a(total_bytes);
    a(available_bytes);
    a(cgroup_bytes);
    a(shm_bytes);
    a(shm_free_bytes);
  }
};

struct LoadFacts {
  std::uint32_t cores = 0;  // of the machine, as its kernel schedules: hardware threads
  double busy_cores = 0;    // of these, by others than hvrun, over half a second
  std::string busiest;      // "python3 (pid 12, ada) 3.9 cores"; empty: none above half a core
  std::string governor;     // of the CPUs, "performance"; of several the slowest; empty: not told
  template <class A>
  void fields(A& a) {
    a(cores);
    a(busy_cores);
    a(busiest);
    a(governor);
  }
};

struct PortFacts {
  std::string range;        // as asked; empty: any
  std::uint32_t ports = 0;  // in it
  std::uint32_t taken = 0;  // that nobody may listen on
  template <class A>
  void fields(A& a) {
    a(range);
    a(ports);
    a(taken);
  }
};

struct InterfaceFacts {
  std::string name;
  std::vector<std::string> addresses;
  std::uint32_t mtu = 0;
  std::uint32_t megabits = 0;  // of its link; 0: not told
  bool is_up = false;
  template <class A>
  void fields(A& a) {
    a(name);
    a(addresses);
    a(mtu);
    a(megabits);
    a(is_up);
  }
};

struct RdmaPortFacts {
  std::string adapter;  // "mlx5_0"
  std::uint32_t port = 0;
  std::string state;     // "ACTIVE", "DOWN"
  std::string physical;  // "LinkUp", "Disabled"
  template <class A>
  void fields(A& a) {
    a(adapter);
    a(port);
    a(state);
    a(physical);
  }
};

struct NetworkFacts {
  std::vector<InterfaceFacts> interfaces;
  std::vector<RdmaPortFacts> rdma;
  template <class A>
  void fields(A& a) {
    a(interfaces);
    a(rdma);
  }
};

struct CheckRequest {
  static constexpr Type kType = Type::kCheckRequest;
  double timeout_s = 5;                     // of each probe
  std::vector<std::string> probes;          // by name, those to be answered; empty: all
  std::vector<Program> programs;            // without argv: none is named
  std::vector<std::string> environment;     // NAME=VALUE, of every rank
  std::vector<std::string> host_variables;  // as in Launch
  std::string port_range;                   // as in Setup
  template <class A>
  void fields(A& a) {
    a(timeout_s);
    a(probes);
    a(programs);
    a(environment);
    a(host_variables);
    a(port_range);
  }
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
  template <class A>
  void fields(A& a) {
    a(unanswered);
    a(folders);
    a(programs);
    a(limits);
    a(memory);
    a(load);
    a(ports);
    a(network);
  }
};

// Measure the way to these hosts, one address each, after the proofs of an address probe.
struct PairRequest {
  static constexpr Type kType = Type::kPairRequest;
  std::vector<ProbeTarget> targets;
  double timeout_s = 5;
  template <class A>
  void fields(A& a) {
    a(targets);
    a(timeout_s);
  }
};
struct PairMeasure {
  std::uint32_t host_index = 0;
  std::string problem;         // why nothing, or not all, was measured
  double round_trip_us = 0;    // the median of small exchanges; 0: not measured, as the next ones
  double megabytes_per_s = 0;  // one connection, in one direction
  double resent_share = 0;     // of its segments
  std::uint32_t segment_bytes = 0;  // the largest that it sends
  bool is_stuck = false;            // small packets pass, and full-size ones do not
  template <class A>
  void fields(A& a) {
    a(host_index);
    a(problem);
    a(round_trip_us);
    a(megabytes_per_s);
    a(resent_share);
    a(segment_bytes);
    a(is_stuck);
  }
};
struct PairReply {
  static constexpr Type kType = Type::kPairReply;
  std::vector<PairMeasure> measures;
  template <class A>
  void fields(A& a) {
    a(measures);
  }
};

}  // namespace hv::wire
