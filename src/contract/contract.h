// The contract: the environment a rank is born with. The launcher writes it, libhvrun reads it.
// SPDX-License-Identifier: Apache-2.0
//
// Values only, no I/O. docs/contract.md and hvrun-env(7) describe every name for users.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/environment.h"
#include "src/base/status.h"

namespace hv {

// Who a rank is. All counts are those of one job.
struct RankIdentity {
  int rank = 0;  // 0 .. size-1
  int size = 1;
  int local_rank = 0;  // among the ranks of this host
  int local_size = 1;
  int cross_rank = 0;  // among the ranks of all hosts that have this local_rank
  int cross_size = 1;
  std::string job_id;  // random hex; names the job in sockets and environments, is no secret
};

// Who shares a host with whom, in rank order, by the names of the ranks' hosts. Without job_id.
std::vector<RankIdentity> identities_by_host(const std::vector<std::string>& hosts);

// What else a rank must know to meet the others.
struct Contract {
  RankIdentity identity;
  std::string agent_socket;  // "@name" in the abstract namespace, else a path; empty: no hvrun
};

// NAME=VALUE pairs of the contract, HVRUN_* first, then PyTorch's names.
struct ContractAddresses {
  std::string master_address;
  int master_port = 0;
  int host_index = 0;  // GROUP_RANK
};
std::vector<std::pair<std::string, std::string>> contract_environment(
    const Contract& contract, const ContractAddresses& addresses);

// hvrun has started this process.
bool has_contract(const Environment& environment);

// Reads the contract. Without one: a single rank (size 1, empty agent_socket) when no launcher's
// mark is there, or one that says 0 or 1; kContract, naming the variable and what to do, under
// another launcher, with a part of the contract only, or when a value is malformed.
Status read_contract(const Environment& environment, Contract* contract);

// What --lost-after says, in seconds: the ranks' HVRUN_PEER_TIMEOUT unless that is set. Not by the
// option's own variable, which an hvrun inside a rank would take for its own.
inline constexpr char kJobLostAfter[] = "HVRUN_JOB_LOST_AFTER";
// The knob by which ranks, too, tell more when hvrun does.
inline constexpr char kStragglerSeconds[] = "HVRUN_STRAGGLER_SECONDS";

// The names that the launcher itself sets; -x may not override them.
const std::vector<std::string>& contract_names();
bool is_contract_name(std::string_view name);

// How a rank's Python lets its agent read where it stands; python/hvrun/_stacks.py says the same.
// The package hvrun opens a memory file of that name and has faulthandler write every thread's
// stack into it when that signal comes. Forked children share both: whoever asks several of them
// asks one after the other.
// SIGRTMIN + 14 of glibc. By its number: C libraries differ in what SIGRTMIN is, and an agent is
// linked with another one than Python may be.
inline constexpr int kStacksSignal = 48;
inline constexpr char kStacksFile[] = "hvrun-stacks";

}  // namespace hv
