// What hosts have told of themselves, for those who judge it. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "launcher/check/groups.h"
#include "launcher/check/probe.h"

namespace hv::launcher {

struct ToldHost {
  const CheckedHost* host;
  const wire::CheckReply* told;
  bool ranks_may_run = false;
  std::size_t ranks() const { return host->ranks.size(); }
  // Whose needs are not in what the host tells: ranks that run have what they use, and room is
  // lacking then where there is none for a single one.
  std::size_t ranks_to_come() const {
    return ranks_may_run ? std::min<std::size_t>(ranks(), 1) : ranks();
  }
};

// Hosts that have answered that probe of the agent's, in the job's order. Of the others the
// judgement is told that they were not looked at.
std::vector<ToldHost> told_by(const CheckInput& input, const std::string& probe,
                              Judgement* judgement);
// A part of a probe that some hosts could not answer.
void tell_gaps(const CheckInput& input, const std::string& part, Judgement* judgement);

// Places in JobSpec::programs: of those that a host's ranks are to run; of all without a plan.
std::vector<std::size_t> programs_on(const CheckInput& input, const CheckedHost& host);

struct ToldProgram {
  const CheckedHost* host;
  const wire::ProgramFacts* facts;
};
// Of each program the hosts that have told of it, by its place in JobSpec::programs.
std::vector<std::vector<ToldProgram>> programs_by_host(const CheckInput& input,
                                                       const std::vector<ToldHost>& hosts);

// By index of the host: its interface with the address by which others first reached it. Hosts
// without a known one are left out.
std::map<std::size_t, const wire::InterfaceFacts*> interfaces_in_use(const CheckInput& input);

using HostFact = std::pair<std::string, std::string>;  // name, what it told
// One finding for all of these hosts, with their facts in groups; none where there are no facts.
void add_grouped(const std::string& verdict, const std::vector<HostFact>& facts,
                 Judgement* judgement, Fill values = {});

}  // namespace hv::launcher
