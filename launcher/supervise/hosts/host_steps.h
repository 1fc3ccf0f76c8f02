// The steps by which hvrun comes to know its hosts, for a launch and for a check. Coroutines over
// the Job.
// SPDX-License-Identifier: Apache-2.0
//
// In a launch each throws Error for the first thing that is wrong, with every host that has the
// same trouble named in it, or Interrupted when the user ends the job meanwhile. In a check
// (LaunchContext::goes_on_without_hosts) a host that fails keeps its Error, and the others go on.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/allocation/host_list.h"
#include "launcher/check/check_input.h"
#include "launcher/spawn/spawner.h"
#include "launcher/supervise/hosts/address_choice.h"
#include "launcher/supervise/job.h"
#include "src/wire/check.h"

namespace hv::launcher {

// The job was asked to stop while it was being launched.
struct Interrupted {};

// Tells a phase and its time, with --verbose.
using PhaseReport = std::function<void(const std::string&)>;
// Tells an error or a warning at once.
using Announce = std::function<void(const std::string&)>;

// Outlives the io_context's run: a host that is slow to connect may still use it after an Error.
struct LaunchContext {
  Job& job;
  const HostList& list;
  Spawner& spawner;
  LinkObserver& observer;
  const Environment& environment;
  PhaseReport phase;
  Announce warn;
  WayCheck check_way{};
  bool goes_on_without_hosts = false;
  bool is_connecting = true;
};

constexpr std::size_t kSentAtOnce = 64;  // copies of a small program on their way

// The hosts that get an agent, as targets.
std::vector<HostTarget> targets_of(const JobSpec& spec, const HostList& list,
                                   const std::string& own_hostname);

// Names the job and its hosts; nothing has been started yet.
void begin_job(LaunchContext& context);
bool has_failed(const HostState& host);
// doing: what hvrun was at. none: it has not failed.
std::optional<Error> failure_of(const HostState& host, const std::string& doing, Spawner& spawner);

// Waits until every host has done its part; a host that fails ends a launch, once the others had a
// moment.
boost::asio::awaitable<void> await_hosts(LaunchContext& context, const std::string& doing,
                                         std::function<bool(const HostState&)> done,
                                         TimePoint deadline);
TimePoint answer_deadline(const Job& job);

// For how long a driver may be asked, and whose that limit is, in words.
struct InventoryTime {
  Duration timeout{};
  std::string whose{};
};
// Of what lies beside the agent.
void ask_for_inventory(HostState* host, const InventoryTime& time);
// Once that was missing there; false, and its answer says why, where hvrun has none for that host.
bool ask_with_own_program(HostState* host, const InventoryTime& time);

boost::asio::awaitable<void> connect_hosts(LaunchContext& context);
// On the hosts where the plan needs it and may wait for it, and only there; in a check on all.
boost::asio::awaitable<void> take_inventories(LaunchContext& context);
// Makes the plan; hosts that got no rank are let go.
void plan_ranks(LaunchContext& context);
boost::asio::awaitable<void> set_up_hosts(LaunchContext& context);
// Once they are set up. none: each host is a machine of its own, or need not be.
std::optional<Error> same_machines_of(const LaunchContext& context);

// Which its ranks are to use: its line's ifname= beats HVRUN_INTERFACES.
std::string interfaces_of(const LaunchContext& context, std::size_t host);

struct TriedAddresses {
  AddressChoice choice;
  std::vector<std::vector<std::string>> candidates{};  // each host's own
  std::vector<ProbeOutcome> outcomes{};
};
boost::asio::awaitable<TriedAddresses> probe_addresses(LaunchContext& context);

// Its agent answers.
bool is_reached(const HostState& host);
// What agents are asked to check on their hosts. time: of each probe. probes: by name; empty: all.
wire::CheckRequest check_request(const LaunchContext& context, Duration time,
                                 std::vector<std::string> probes = {});
// What is known of each host by then, in the job's order.
std::vector<CheckedHost> checked_hosts(const LaunchContext& context);

}  // namespace hv::launcher
