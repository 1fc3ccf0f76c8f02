// Messages that wire MPI programs: hvrun requests a PMIx server from each agent, which starts one,
// hvrun-pmix, on its host.
// SPDX-License-Identifier: Apache-2.0
//
// hvrun                    agent                        hvrun-pmix
//   -> WiringRequest         starts hvrun-pmix
//                            -> PmixJob
//                            <- PmixReady               variables of the host's ranks, or a problem
//   <- WiringReply
//                            <- PmixClient              a rank has begun PMIx, or ended it
//   <- FenceIn               <- PmixFence               all ranks of this host have come
//   -> FenceOut              -> PmixFence               the data of all hosts
//   <- MpiBegun              the first rank of this host has begun MPI, by PMIx or PMI-1
//   <- MpiMissed             ranks wait for one that has ended, see Exited
// PMI-1 needs no request: the agent itself is its server, and Launch has its data.
// The fences of both have epochs of their own, which no fence of libhvrun has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/wire/messages.h"

namespace hv::wire {

constexpr std::uint32_t kPmixEpoch = UINT32_MAX, kPmiEpoch = UINT32_MAX - 1;
constexpr std::uint32_t kEpochsOfRanks = kPmiEpoch;  // libhvrun's epochs are below this

// The hosts of the job, and each rank's host and program.
struct MpiWorld {
  std::string space;  // the job's PMIx namespace; random, so that no other job can guess it
  std::vector<std::string> hosts;
  std::vector<std::uint32_t> host_of_rank;
  std::vector<std::uint32_t> program_of_rank;
  void fields(auto& a) { a(space, hosts, host_of_rank, program_of_rank); }
};

// Requests a PMIx server.
struct WiringRequest {
  static constexpr Type kType = Type::kWiringRequest;
  MpiWorld world;
  double timeout_s = 20;
  std::string library_path{};  // the ranks' LD_LIBRARY_PATH, so that both find the same libpmix
  std::string program{};       // hvrun-pmix's bytes; empty: use the one in the agent's directory
  std::uint32_t host = 0;      // the agent's host, as an index into world.hosts
  void fields(auto& a) { a(world, timeout_s, library_path, program, host); }
};
struct WiringReply {
  static constexpr Type kType = Type::kWiringReply;
  bool is_missing = false;  // the agent's directory has no hvrun-pmix
  std::string problem{};    // why there is no server; empty: there is one
  std::string hint{};
  void fields(auto& a) { a(is_missing, problem, hint); }
};

// Ranks of this host wait in MPI for a rank of this host that has ended.
struct MpiMissed {
  static constexpr Type kType = Type::kMpiMissed;
  std::uint32_t epoch = 0;  // kPmiEpoch or kPmixEpoch
  void fields(auto& a) { a(epoch); }
};

// The first rank of this host has begun MPI by that interface: see QueryReply.
struct MpiBegun {
  static constexpr Type kType = Type::kMpiBegun;
  std::uint32_t epoch = 0;  // kPmiEpoch or kPmixEpoch
  void fields(auto& a) { a(epoch); }
};

enum class PmixType : std::uint8_t { kJob = 1, kFence, kReady = 65, kClient };

struct PmixJob {
  static constexpr PmixType kType = PmixType::kJob;
  MpiWorld world;
  std::uint32_t host = 0;  // hvrun-pmix's host, as an index into world.hosts
  std::string folder;      // private directory for the files of PMIx and MPI
  void fields(auto& a) { a(world, host, folder); }
};
struct PmixReady {
  static constexpr PmixType kType = PmixType::kReady;
  std::string problem{};
  std::string hint{};
  std::vector<std::pair<std::uint32_t, Pairs>> variables{};  // by rank
  Pairs defaults{};  // of every rank, set only where a name has no value yet
  void fields(auto& a) { a(problem, hint, variables, defaults); }
};
struct PmixClient {
  static constexpr PmixType kType = PmixType::kClient;
  std::uint32_t rank = 0;
  bool has_ended = false;
  void fields(auto& a) { a(rank, has_ended); }
};
struct PmixFence {
  static constexpr PmixType kType = PmixType::kFence;
  std::uint32_t number = 0;
  std::string bytes;
  void fields(auto& a) { a(number, bytes); }
};

}  // namespace hv::wire
