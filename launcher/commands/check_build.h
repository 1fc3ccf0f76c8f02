// Which frameworks and backends are here, and why one is not: gathered once, printed by
// `hvrun --check-build` and `hvrun env`, and as JSON by `python -m hvrun.doctor`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "src/base/environment.h"

namespace hv::launcher {

struct BuildFact {
  std::string name{};
  bool is_there = false;
  std::string text{};         // its version, or why it is missing and what to try
  bool is_installed = false;  // it is installed, and this host cannot use it
};

struct BuildFacts {
  std::vector<BuildFact> frameworks;
  BuildFact mpi{"MPI"}, nccl{"NCCL"}, cuda{"CUDA"};  // CUDA: driver and GPUs
  BuildFact operations{};  // text: which backend carries out which one, or why that is unknown
};

// Opens libraries in processes of their own, because a broken one may end its process. Call it
// before the first thread starts.
BuildFacts gather_build_facts(const Environment& environment);

// For `hvrun --check-build`: horovodrun's form, and the reasons below it. Pure.
std::string check_build_text(const BuildFacts& facts);

// `hvrun --check-build`: prints check_build_text. Returns the exit code; throws Error.
int print_check_build(const Environment& environment);

// For `hvrun env`: which backends are here, why one is not, and who carries out what. Pure.
std::string backends_text(const BuildFacts& facts);

// printed: a line for each framework: name, tab, version or nothing. Pure.
std::vector<BuildFact> framework_facts(const std::string& printed, const std::string& trouble);

// NCCL as this host can use it. library: its version and path. Pure.
BuildFact nccl_with(const BuildFact& driver, BuildFact library);

}  // namespace hv::launcher
