// JobRequest: what is asked of `hvrun script`, after its options have been understood. A value.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hv::launcher {

// --signal USR1@120: so long before the time limit.
struct EarlySignal {
  std::string name;  // USR1 or USR2, which hvrun hands to the ranks
  std::chrono::seconds before{};
};

constexpr int kMostSignalSeconds = 65535;  // Slurm's bound

// Of the hvrun in the script.
struct HvrunOptions {
  std::vector<std::string> typed;
  // That of --output-dir, which is then not in `typed`: of a job that comes back, each run has a
  // directory of its own below it. Empty: --output-dir is as typed.
  std::string output_directory;
  std::string main_file;  // the script or module that its program runs; empty: the program itself
};

struct JobRequest {
  std::optional<int> ranks, nodes, ranks_per_node, gpus_per_rank, cores_per_rank;
  std::string partition, account, qos, job_name, output;
  std::vector<std::string> modules, options;
  std::optional<std::chrono::seconds> time;
  std::optional<EarlySignal> signal;
  std::optional<int> requeues;  // how often the job may come back
  HvrunOptions hvrun;
  std::vector<std::string> program;
};

// "USR1@120", "SIGUSR2@5m"; nothing for any other signal. The bound is the caller's to check.
std::optional<EarlySignal> parse_early_signal(std::string_view text);

}  // namespace hv::launcher
