// All that a check goes by, as values: what the user asked for, the plan, and what hosts told.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/plan/job_spec.h"
#include "launcher/plan/launch_plan.h"
#include "src/base/error.h"
#include "src/wire/check.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// A host whose agent was to be started. Those that the plan gives no rank are not in it.
struct CheckedHost {
  std::string name;                // as it was named
  std::string origin{};            // by whom: "hosts:3", "-H"
  std::optional<Error> failure{};  // why its agent does not answer, or not any more
  double seconds_to_agent = 0;     // from the start of it all to its Hello
  std::optional<wire::Facts> facts{};
  double clock_ahead_s = 0;  // its wall clock less this one's
  double clock_error_s = 0;  // by which that may be wrong; none of it is known where it has failed
  bool is_asked_for_inventory = false;
  std::optional<wire::InventoryReply> inventory{};
  std::optional<wire::CheckReply> told{};
  std::vector<int> ranks{};
  std::string unmet_interfaces{};  // HVRUN_INTERFACES or ifname= there, which allows no address
  bool has_named_gpus = false;     // its line, or a rankfile, says which of its GPUs are the job's
};

// What one host found of another: indices into CheckInput::hosts.
struct PairFacts {
  std::size_t from = 0, to = 0;
  std::vector<std::string> tried{};    // addresses of `to`
  std::vector<std::string> reached{};  // of these, that have proved to be its
  std::string reason{};                // why none was: "10.0.0.2: Connection refused"
  // Of a sample of pairs, by an address that was reached.
  std::string address{};
  std::optional<wire::PairMeasure> measure{};
};

struct CheckInput {
  JobSpec spec;
  bool has_program = true;           // hvrun check may have none
  bool ranks_may_run = false;        // then what they use is not free
  std::vector<CheckedHost> hosts{};  // in the job's order
  LaunchPlan plan{};                 // without ranks where it could not be made
  std::optional<Error> plan_problem{};
  std::optional<Error> same_machines{};  // hosts that are one machine
  std::vector<PairFacts> pairs{};
  std::vector<std::string> warnings{};  // of the plan and the choice of addresses
  double seconds = 0;                   // what the launch takes up to the ranks' start

  bool is_reached(std::size_t host) const { return !hosts[host].failure && hosts[host].facts; }
};

// Versions of a package, by any of its names, in the environments of the programs that the host's
// ranks would run. An environment that has it by two names does not count: nobody knows which one
// is used.
std::set<std::string> versions_of(const CheckInput& input, std::size_t host,
                                  const std::vector<std::string>& names);

struct CudaOfTorch {
  std::int64_t major = 0;
  std::string version{};  // PyTorch's: "2.13.0+cu130"
};
// The newest CUDA that a PyTorch there is built for; none: not told, or for the CPU.
std::optional<CudaOfTorch> cuda_of_torch(const CheckInput& input, std::size_t host);

}  // namespace hv::launcher
