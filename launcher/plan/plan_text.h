// A LaunchPlan as people and programs read it: --dry-run's text and JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "launcher/plan/job_spec.h"
#include "launcher/plan/launch_plan.h"

namespace hv::launcher {

// "4 ranks on 2 hosts, each runs: ./train"; of several programs a line for each.
std::string plan_heading(const JobSpec& spec, const LaunchPlan& plan);

// That, and a table: rank, host, local rank, cross rank, GPU.
std::string plan_as_text(const JobSpec& spec, const LaunchPlan& plan);

// One object: version, program, hosts, ranks. Numbers that only the hosts can tell are null, lists
// empty. No secret is in it.
std::string plan_as_json(const JobSpec& spec, const LaunchPlan& plan);

}  // namespace hv::launcher
