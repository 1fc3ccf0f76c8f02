// The Slurm step that starts agents: its command and its environment. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "src/base/environment.h"

namespace hv::launcher {

struct SrunStep {
  std::vector<std::string> nodes;      // each gets one agent
  std::string agent_program;           // its file, on this machine and, unless copied, on the nodes
  std::vector<std::string> addresses;  // at which hvrun listens
  std::string name;                    // what it awaits them by, before the nodes' names
  std::string copy_as{};               // where srun puts a copy on each node; empty: none
  int gpus_per_node = 0;               // that the step asks for; 0: what each step has anyway
};

// The agent gets all of its node beside whatever else runs there (--overlap), and no core of its
// own: hvrun binds the ranks. One that ends, well or not, ends no other, whatever slurm.conf says.
std::vector<std::string> srun_words(const SrunStep& step);

// Takes copies away that did not remove themselves, since they could not be run.
std::vector<std::string> remove_words(const SrunStep& step);

// Of a job that was given GPUs for each task a step with one task a node has the GPUs of one task:
// so many it must ask for to have all, or as many as each node has. 0: it has them anyway.
int gpus_of_nodes(const Environment& own);

// own, less what would make srun start the step in another way than its words say: Slurm gives
// every srun in a job what sbatch was told.
Environment srun_environment(const Environment& own);

// words: how srun has ended, and its stderr. The agent's file is not there on a node.
bool is_agent_missing(const std::string& words);
// Nor can it be run where it is: its folder takes no programs (noexec).
bool is_agent_forbidden(const std::string& words);
// The gist of words in one line, lines that name the node first (empty: none does), what several
// nodes say alike but once, at most limit bytes.
std::string gist_of_srun(const std::string& words, const std::string& node, std::size_t limit);
// What to try.
std::string srun_advice(const std::string& words);

}  // namespace hv::launcher
