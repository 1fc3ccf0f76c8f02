// The steps of a launch, and of a check, up to the launch of ranks: coroutines that change the Job.
// SPDX-License-Identifier: Apache-2.0
//
// In a launch each step throws Error for the first failure, with the names of all hosts that have
// the same one, or Interrupted when the user ends the job meanwhile. In a check
// (LaunchContext::goes_on_without_hosts) a failed host keeps its Error, and the others continue.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/allocation/host_list.h"
#include "launcher/check/check_input.h"
#include "launcher/plan/common_environment.h"
#include "launcher/spawn/spawner.h"
#include "launcher/supervise/hosts/address_choice.h"
#include "launcher/supervise/job.h"
#include "launcher/supervise/report/console.h"
#include "launcher/supervise/slurm_query.h"
#include "src/wire/check.h"

namespace hv::launcher {

// The job was asked to stop while it was being launched.
struct Interrupted {};

// Outlives the io_context's run: a host that is slow to connect may still use it after an Error.
struct LaunchContext {
  Job& job;
  const HostList& list;
  Spawner& spawner;
  LinkObserver& observer;
  const Environment& environment;  // hvrun's own
  CommonEnvironment ranks;         // what the ranks have in common
  const Console& console;
  WayCheck check_way{};
  SlurmQuery slurm{};
  bool goes_on_without_hosts = false;
  std::string printed_errors{};  // of hosts, which findings need not repeat

  // Reports a phase and its time, with --verbose.
  void phase(const std::string& text) const { console.report_phase(text); }
  // Prints an error or a warning at once.
  void warn(const std::string& text) const { console.say(text); }
};

constexpr std::size_t kSentAtOnce = 64;  // copies of a helper program in flight

// The hosts that get an agent, in the list's order: a target's position is its HostId.
std::vector<HostTarget> targets_of(const JobSpec& spec, const HostList& list,
                                   const std::string& own_hostname);

// Sets the job's identity and its hosts; starts nothing.
void begin_job(LaunchContext& context);
bool has_failed(const Host& host);
// doing: what hvrun was doing. none: it has not failed.
std::optional<Error> failure_of(const Host& host, const std::string& doing, Spawner& spawner);

// Waits until every host has done its part. A host that fails ends a launch, after a short wait for
// the failures of other hosts. Time in which hvrun was stopped defers the deadline.
boost::asio::awaitable<void> await_hosts(LaunchContext& context, const std::string& doing,
                                         std::function<bool(const Host&)> done, TimePoint deadline);
TimePoint answer_deadline(const Job& job);

// The time limit of drivers. name: the text for messages that names the limit.
struct InventoryTime {
  Duration timeout{};
  std::string name{};
};
// Runs the inventory program next to the agent.
void ask_for_inventory(Host* host, const InventoryTime& time);
// Sends hvrun's own inventory program to a host that lacks one. False, with the reason in the
// host's answer: hvrun has none for that host's architecture.
bool ask_with_own_program(Host* host, const InventoryTime& time);

boost::asio::awaitable<void> connect_hosts(LaunchContext& context);
// On the hosts whose GPUs the plan needs to know; in a check on all hosts.
boost::asio::awaitable<void> take_inventories(LaunchContext& context);
// Makes the plan, and drops the links of hosts without ranks.
void plan_ranks(LaunchContext& context);
boost::asio::awaitable<void> set_up_hosts(LaunchContext& context);
// After they are set up. none: each host is a machine of its own, or --oversubscribe allows more.
std::optional<Error> same_machines_of(const LaunchContext& context);

// The interfaces that a host's ranks use: ifname= on its line overrides HVRUN_INTERFACES.
std::string interfaces_of(const LaunchContext& context, const Host& host);

// Hosts by their position in the epoch.
struct TriedAddresses {
  AddressChoice choice;
  std::vector<std::vector<std::string>> candidates{};  // each host's own
  std::vector<ProbeOutcome> outcomes{};
};
boost::asio::awaitable<TriedAddresses> probe_addresses(LaunchContext& context);

// The agent has answered, and the host has not failed.
bool is_reached(const Host& host);
// An agent of another build may understand other messages.
bool is_same_build(const wire::Hello& hello);
// Asks an agent to check its host. time: for each probe. probes: by name; empty: all.
wire::CheckRequest check_request(const LaunchContext& context, Duration time,
                                 std::vector<std::string> probes = {});
// The hosts' answers so far, in the epoch's order.
std::vector<CheckedHost> checked_hosts(const LaunchContext& context);

}  // namespace hv::launcher
