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
  bool is_installed = false;  // though this host cannot use it
};

struct BuildFacts {
  std::string python;  // that was asked for frameworks
  std::vector<BuildFact> frameworks, controllers, operations;
  BuildFact carriers;  // words: the table of who carries out what, or why there is none
};

struct BackendFacts {
  std::vector<BuildFact> backends;  // native, mpi, nccl
  BuildFact carriers;               // as above
};

// In horovodrun's form, and below it why. Pure.
std::string check_build_text(const BuildFacts& facts);

// Of what the Python program prints, a line for each framework: name, tab, version or nothing.
// Pure.
std::vector<BuildFact> framework_facts(const std::string& printed, const std::string& trouble);

// NCCL as this host can use it. library: its version and place. Pure.
BuildFact nccl_with(const BuildFact& driver, BuildFact library);

// For `hvrun env`: which backends are here, why one is not, and who carries out what. Pure.
std::string backends_text(const BackendFacts& facts);

// As the next, of the backends alone.
BackendFacts look_at_backends(const Environment& environment);

// Looks. Libraries are opened in processes of their own, for one that is broken may take its
// process with it. In a process without threads.
BuildFacts look_at_build(const Environment& environment);

}  // namespace hv::launcher
