// From a JobSpec to running ranks: connect, plan, set up, probe, launch, go. Coroutines over the
// Job.
// SPDX-License-Identifier: Apache-2.0
//
// Nothing is started on any host before every host has said that it can. Each step throws Error for
// the first thing that is wrong, with every host that has the same trouble named in it, or
// StopRequest's exception Interrupted when the user ends the job meanwhile.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <string>

#include "launcher/allocation/host_list.h"
#include "launcher/spawn/spawner.h"
#include "launcher/spawn/way_check.h"
#include "launcher/supervise/job.h"

namespace hv::launcher {

// The job was asked to stop while it was being launched.
struct Interrupted {};

// Tells a phase and its time, with --verbose.
using PhaseReport = std::function<void(const std::string&)>;
// Tells an error or a warning at once.
using Announce = std::function<void(const std::string&)>;

struct LaunchContext {
  Job& job;
  const HostList& list;
  Spawner& spawner;
  LinkObserver& observer;
  const Environment& environment;
  PhaseReport phase;
  Announce warn;
  WayCheck check_way{};
};

// context must outlive the io_context's run: a host that is slow to connect may still use it after
// an Error.
boost::asio::awaitable<void> launch_job(LaunchContext& context);

// The hosts that get an agent, as targets.
std::vector<HostTarget> targets_of(const JobSpec& spec, const HostList& list,
                                   const std::string& own_hostname);

}  // namespace hv::launcher
