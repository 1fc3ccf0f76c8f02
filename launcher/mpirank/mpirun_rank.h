// A rank that an MPI's mpirun has started: it gets here what hvrun's own launch would give it.
// SPDX-License-Identifier: Apache-2.0
//
// mpirun asks no host for its cores before it starts ranks, so the agent does, once it is there:
// it stands between mpirun and each rank, which mpirun tells its place on the host.
#pragma once

#include <string>
#include <vector>

#include "launcher/plan/launch_plan.h"
#include "src/base/core_mask.h"
#include "src/base/environment.h"

namespace hv::launcher {

// "hvrun-agent --bind slot program": by what rule; "numa": --map-by numa; "none": mpirun binds it,
// if anybody. "+told" behind it: each rank tells on stderr what it has (--report-bindings).
constexpr const char* kBind = "--bind";
constexpr const char* kBoundElsewhere = "none";

std::string binding_words(bool in_turn, bool is_told);

struct MpirunRank {
  CoreMask cores{};           // that it runs on; empty: as mpirun has left it
  Environment environment{};  // its own, and what hvrun adds to it
  std::string report{};       // a line for stderr; empty: none is wanted
};

// What PyTorch's env:// and others ask for (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE), as the
// MPI says it; nothing where it does not. Pure.
void add_numbers(Environment* environment);

// words: of binding_words(). environment: of a rank of Open MPI's or Hydra's. Throws Error(kUsage)
// where words or environment do not say which rule and which of how many local ranks. Pure.
MpirunRank bind_mpirun_rank(const std::string& words, const Environment& environment,
                            const HostFacts& facts, const std::string& host);

// Becomes the program, on the cores of its rank. Returns errno where that is not possible.
int become(const MpirunRank& rank, const std::vector<std::string>& program);

}  // namespace hv::launcher
