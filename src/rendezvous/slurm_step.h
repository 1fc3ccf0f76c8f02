// The tasks of a Slurm step that has neither PMI nor PMIx (srun --mpi=none): who they are, and how
// they meet all the same.
// SPDX-License-Identifier: Apache-2.0
//
// By munge, which every host of a Slurm cluster has, else by a file in the home folder, which hosts
// then must share: rank 0 makes it up, readable by this user only, and takes it away when all have
// met.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/environment.h"
#include "src/base/status.h"
#include "src/net/port_range.h"
#include "src/rendezvous/exchange.h"
#include "src/wire/authentication.h"

namespace hv {

struct SlurmStep {
  int rank = 0;
  int size = 1;
  std::string name;        // "JOB.STEP"
  std::string first_node;  // rank 0's
};

// Nothing: this process is no task of a step of several. Not SLURM_NTASKS, which a batch script
// has, too, but what only a step has.
std::optional<SlurmStep> slurm_step(const Environment& environment);

// The first name of a node expression: "n[01-16,20],gpu1" is n01.
std::string first_node(const std::string& expression);

// Of the range, or of those that no service has: some that depend on the step alone.
std::vector<std::uint16_t> ports_of_step(const std::string& name, const PortRange& range);

// What rank 0 answers, in a credential of its own, the rank that has asked with these words: the
// key, and the words. Pure.
std::string encode_key_answer(const JobKey& key, std::string_view words);
bool decode_key_answer(std::string_view answer, std::string_view words, JobKey* key);

// Why ranks of one host cannot see each other's GPUs, and what to change; empty: this one sees all.
std::string hidden_gpus(const Environment& environment);

Status open_slurm_step(const SlurmStep& step, const Environment& environment,
                       const MeetingTerms& meeting, std::unique_ptr<Exchange>* exchange);

}  // namespace hv
