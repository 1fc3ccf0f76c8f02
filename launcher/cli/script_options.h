// The options of `hvrun script`, and what was typed for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace hv::launcher {

// Values as typed.
struct RawScriptOptions {
  std::string np, nodes, ranks_per_node, gpus_per_rank, cores_per_rank;
  std::string site, partition, account, qos, time, signal, requeue, job_name, output;
  std::vector<std::string> modules, options;
  std::string file, shown_site;
  bool force = false, list_sites = false, help = false;
};

constexpr int kDefaultRequeues = 10;

// raw must outlive the app's parsing.
void add_script_options(CLI::App& app, RawScriptOptions& raw);
std::string script_help(const CLI::App& app);

}  // namespace hv::launcher
