// Messages by which MPI programs are wired: hvrun asks an agent for a PMIx server on its host, and
// the agent speaks with hvrun-pmix, which is one.
// SPDX-License-Identifier: Apache-2.0
//
// hvrun                    agent                        hvrun-pmix
//   -> WiringRequest         starts hvrun-pmix
//                            -> PmixJob
//                            <- PmixReady               what its ranks are born with, or a problem
//   <- WiringReply
//                            <- PmixClient              a rank has begun PMIx, or ended it
//   <- FenceIn               <- PmixFence               all ranks of this host are there
//   -> FenceOut              -> PmixFence               what all hosts have said
//   <- MpiBegun              the first rank of this host has begun MPI, for each way
//   <- MpiMissed             ranks wait for one that has ended, see Exited
// PMI-1, whose server is the agent itself, needs no request: Launch says what it tells the ranks.
// Both put what the ranks of a host say to the others under epochs of their own, which no rank has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/wire/messages.h"

namespace hv::wire {

constexpr std::uint32_t kPmixEpoch = UINT32_MAX, kPmiEpoch = UINT32_MAX - 1;
constexpr std::uint32_t kEpochsOfRanks = kPmiEpoch;  // theirs are below

// Which hosts there are, which of them each rank runs on, and which of the job's programs it is of.
struct MpiWorld {
  std::string space;  // the job's name among PMIx's, which nobody guesses
  std::vector<std::string> hosts;
  std::vector<std::uint32_t> host_of_rank;
  std::vector<std::uint32_t> program_of_rank;
  void fields(auto& a) { a(space, hosts, host_of_rank, program_of_rank); }
};

// Start a PMIx server: by the hvrun-pmix beside the agent, or by these bytes of one.
struct WiringRequest {
  static constexpr Type kType = Type::kWiringRequest;
  MpiWorld world;
  double timeout_s = 20;
  std::string library_path{};  // the ranks' LD_LIBRARY_PATH: by it libpmix is found as theirs is
  std::string program{};
  std::uint32_t host = 0;  // the agent's own host: its position in world.hosts
  void fields(auto& a) { a(world, timeout_s, library_path, program, host); }
};
struct WiringReply {
  static constexpr Type kType = Type::kWiringReply;
  bool is_missing = false;  // there is no such program beside the agent
  std::string problem{};    // why there is no server; empty: it is there
  std::string hint{};
  void fields(auto& a) { a(is_missing, problem, hint); }
};

// Ranks of this host wait by MPI for one of it that has ended.
struct MpiMissed {
  static constexpr Type kType = Type::kMpiMissed;
  std::uint32_t epoch = 0;  // kPmiEpoch or kPmixEpoch
  void fields(auto& a) { a(epoch); }
};

// The first of this host's ranks has begun MPI by that way: see QueryReply.
struct MpiBegun {
  static constexpr Type kType = Type::kMpiBegun;
  std::uint32_t epoch = 0;  // kPmiEpoch or kPmixEpoch
  void fields(auto& a) { a(epoch); }
};

enum class PmixType : std::uint8_t { kJob = 1, kFence, kReady = 65, kClient };

struct PmixJob {
  static constexpr PmixType kType = PmixType::kJob;
  MpiWorld world;
  std::uint32_t host = 0;  // this one
  std::string folder;      // of this user alone, for what PMIx and MPI keep while the job runs
  void fields(auto& a) { a(world, host, folder); }
};
struct PmixReady {
  static constexpr PmixType kType = PmixType::kReady;
  std::string problem{};
  std::string hint{};
  std::vector<std::pair<std::uint32_t, Pairs>> variables{};  // by rank
  Pairs defaults{};  // for every rank, unless they are set already
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
