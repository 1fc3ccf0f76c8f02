// The Slurm step that starts agents: its command and its environment. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "src/base/environment.h"

namespace hv::launcher {

struct SrunStep {
  std::vector<std::string> nodes;      // each gets one agent
  std::string agent_program;           // its path on this machine and, unless copied, on the nodes
  std::vector<std::string> addresses;  // of hvrun, which listens there
  std::string name;                    // prefix of the names by which the agents connect
  std::string copy_as{};               // path to which srun copies the agent; empty: no copy
  int gpus_per_node = 0;               // requested GPUs; 0: the step has all without a request
  std::vector<std::string> agent_words{};
  int component = -1;  // of a heterogeneous job, whose nodes they are; -1: the job is none
};

// The agent shares its node with other steps (--overlap) and is not bound to cores: hvrun binds the
// ranks. An agent that ends does not end the others, whatever slurm.conf says.
std::vector<std::string> srun_words(const SrunStep& step);

// Removes copies that could not run, and so did not remove themselves.
std::vector<std::string> remove_words(const SrunStep& step);

// In a job with GPUs per task, a step with one task on each node gets the GPUs of one task, unless
// it requests more: this many, which each node has at least. 0: the step has all without a request.
int gpus_of_nodes(const Environment& own, int component = -1);

// own with only those variables of Slurm that its commands need to find the cluster and the job.
// The others would act as options of srun or scontrol: Slurm sets them in a job for the options of
// sbatch, and users set them for commands of their own.
Environment srun_environment(const Environment& own);

// words: how srun ended, and its stderr. The agent's file is missing on a node.
bool is_agent_missing(const std::string& words);
// The agent's file cannot be executed: its directory is mounted noexec.
bool is_agent_forbidden(const std::string& words);
// A summary of words in one line of at most limit bytes: lines that mention the node first; lines
// that differ in numbers only, once. node: may be empty.
std::string gist_of_srun(const std::string& words, const std::string& node, std::size_t limit);
// The remedy for a failure of srun.
std::string srun_advice(const std::string& words);

}  // namespace hv::launcher
