// The options of hvrun by group, one function each, and what was typed for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "launcher/allocation/allocate.h"

namespace hv::launcher {

// Option values as typed, before they are checked and become a JobSpec, which has the same groups.
struct RawPlacement {
  std::string map_by = "slot", rank_by, npernode, gpus_per_rank, bind_to, gpu_bind = "all";
  bool oversubscribe = false, nic_bind = false;
};
struct RawAccess {
  std::string ssh_port, ssh_user, ssh_identity_file, remote_shell, spawner, start_timeout;
  bool ssh_accept_new = false;
};
struct RawEnvironment {
  std::vector<std::string> exports;
  std::string master_port, wire_mpi;
  bool clean_environment = false, mpi = false, no_hold_port = false, horovod_names = false;
};
struct RawOutput {
  std::string label = "rank", output_directory, shown_ranks, summary_file;
  bool no_label = false, no_training_summary = false, timestamp = false;
  std::string stdin_rank, result_fd;
  bool pty = false;
};
struct RawEnding {
  std::string grace, lost_after, timeout, restarts;
};
struct RawReport {
  std::string dry_run, format = "text", topology_svg, topology_html;
  bool verbose = false, report_bindings = false;
};
struct RawOptions {
  std::string np, working_directory;
  HostWishes hosts;
  RawPlacement placement;
  RawAccess access;
  RawEnvironment environment;
  RawOutput output;
  RawEnding ending;
  RawReport report;
  bool nested = false, check_build = false, help = false, version = false;
};

// Adds all options of hvrun. raw receives their values and must outlive the app's parsing.
void add_options(CLI::App& app, RawOptions& raw);

}  // namespace hv::launcher
