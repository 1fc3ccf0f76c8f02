// The contract: the variables that tell a rank who it is. The launcher sets them, libhvrun reads
// them.
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

// Identifies a rank. All counts are those of one job.
struct RankIdentity {
  int rank = 0;  // 0 .. size-1
  int size = 1;
  int local_rank = 0;  // among the ranks of this host
  int local_size = 1;
  int cross_rank = 0;  // among the ranks of all hosts that have this local_rank
  int cross_size = 1;
  std::string job_id;  // random hex; names the job in sockets and environments, is no secret
};

// The identities of all ranks, in rank order, from the names of their hosts. Without job_id.
std::vector<RankIdentity> identities_by_host(const std::vector<std::string>& hosts);

// Everything that a rank needs to find the others.
struct Contract {
  RankIdentity identity;
  std::string agent_socket;  // "@name" in the abstract namespace, else a path; empty: no hvrun
  int restarts = 0;          // how often hvrun has started the job again before (--restarts)
};

struct ContractAddresses {
  std::string master_address;
  int master_port = 0;
  int host_index = 0;  // GROUP_RANK
};
// The variables of the contract, HVRUN_* first, then PyTorch's names.
std::vector<std::pair<std::string, std::string>> contract_environment(
    const Contract& contract, const ContractAddresses& addresses);

// What horovodrun sets for its ranks, by the names of Horovod.
std::vector<std::pair<std::string, std::string>> horovod_environment(const RankIdentity& who);

// hvrun has started this process.
bool has_contract(const Environment& environment);

// Reads the contract. Without one: a single rank (size 1, empty agent_socket), unless a variable of
// another launcher says that it started several processes. kContract, naming the variable and what
// to do, in that case, for an incomplete contract, and for a malformed value.
Status read_contract(const Environment& environment, Contract* contract);

// --lost-after in seconds: the ranks' HVRUN_PEER_TIMEOUT unless that is set. Differs from the
// option's knob, HVRUN_LOST_AFTER, which would configure an hvrun inside a rank.
inline constexpr char kJobLostAfter[] = "HVRUN_JOB_LOST_AFTER";
// Ranks report stragglers after this time; hvrun --verbose sets it.
inline constexpr char kStragglerSeconds[] = "HVRUN_STRAGGLER_SECONDS";

// Number of the descriptor that rank 0 of hvrun.run writes all results to. Its agent sets the
// variable, only where hvrun was given --result-fd.
inline constexpr char kResultDescriptor[] = "HVRUN_RESULT_FD";

// The launcher takes a value of the user's as the ranks' own; it sets the other names itself.
inline constexpr char kMasterPort[] = "MASTER_PORT";

// The names that the launcher itself sets; -x may not override them.
const std::vector<std::string>& contract_names();
bool is_contract_name(std::string_view name);

// How the agent reads the Python stacks of a rank; python/hvrun/_stacks.py has the same values. On
// this signal Python's faulthandler writes every thread's stack into a memory file of this name,
// which the program has opened at its start (python/rank_start), or the package hvrun. Forked
// children share both, so the agent asks one process after the other.
// The signal is glibc's SIGRTMIN + 14, by its number: C libraries differ in SIGRTMIN, and agent and
// Python may use different ones.
inline constexpr int kStacksSignal = 48;
inline constexpr char kStacksFile[] = "hvrun-stacks";

}  // namespace hv
