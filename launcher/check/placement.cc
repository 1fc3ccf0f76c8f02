// Do the ranks fit on the hosts, each machine named once?
// SPDX-License-Identifier: Apache-2.0
#include "launcher/check/probe_list.h"

namespace hv::launcher {
namespace {

void judge_placement(const CheckInput& input, Judgement* judgement) {
  if (input.plan_problem)
    judgement->add("ranks-do-not-fit", {}, input.plan_problem->what(),
                   {{"ADVICE", input.plan_problem->hint()}});
  if (input.same_machines)
    judgement->add("one-machine-twice", {}, input.same_machines->what(),
                   {{"ADVICE", input.same_machines->hint()}});
}

}  // namespace

const Probe kPlacementProbe{
    "placement",
    "whether the ranks, and what each is to have, fit on the hosts; hosts that are one machine",
    {{"ranks-do-not-fit", Severity::kCannotStart,
      "there are fewer slots, GPUs or cores than the ranks are to have",
      "hvrun runs all of the ranks or none",
      "name more hosts, lower -np, state more slots (-H n1:8), or let ranks share slots: "
      "--oversubscribe"},
     {"one-machine-twice", Severity::kCannotStart,
      "agents of two hosts of the list found each other on one machine",
      "its GPUs and cores would be given out twice",
      "name each machine once, with all of its slots, or add --oversubscribe to run ranks there "
      "under each name"}},
    judge_placement};

}  // namespace hv::launcher
