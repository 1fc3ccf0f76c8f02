// hvrun --check-build: which frameworks and backends are here, and why one is not.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "src/base/environment.h"

namespace hv::launcher {

// Something that is there or not. words: its version, or why it is not and what mends that.
struct BuildFact {
  std::string name;
  bool is_there = false;
  std::string words{};
  std::string side{};  // which half of it, where two stand under one name: "launcher"
};

struct BuildFacts {
  std::string python;  // that was asked for frameworks
  std::vector<BuildFact> frameworks, controllers, operations;
};

// In horovodrun's form, and below it why. Pure.
std::string check_build_text(const BuildFacts& facts);

// Of what the Python program prints, a line for each framework: name, tab, version or nothing.
// Pure.
std::vector<BuildFact> framework_facts(const std::string& printed, const std::string& trouble);

// For `hvrun env`: which backends are here, why one is not, and who is chosen. wanted:
// HVRUN_BACKEND. Pure.
std::string backends_text(const std::vector<BuildFact>& backends, const std::string& wanted);

// As the next, of the backends alone: native, mpi, nccl.
std::vector<BuildFact> look_at_backends(const Environment& environment);

// Looks. Libraries are opened in processes of their own, for one that is broken may take its
// process with it. In a process without threads.
BuildFacts look_at_build(const Environment& environment);

}  // namespace hv::launcher
