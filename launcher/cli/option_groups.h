// The options of hvrun by group, one function each, and what was typed for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "launcher/allocation/allocate.h"

namespace hv::launcher {

// Option values as typed, before they are checked and become a JobSpec.
struct RawOptions {
  HostWishes hosts;
  std::string np, map_by = "slot", rank_by, npernode, gpus_per_rank, bind_to, gpu_bind = "all";
  bool is_check = false;
  std::string ssh_port, wire_mpi, dry_run, format = "text", working_directory;
  std::string topology_svg, topology_html;
  std::string start_timeout, grace, lost_after, timeout, master_port;
  std::string ssh_user, ssh_identity_file, remote_shell, spawner, output_directory, summary_file;
  std::vector<std::string> exports;
  bool oversubscribe = false, nic_bind = false, report_bindings = false;
  bool ssh_accept_new = false, clean_environment = false, no_hold_port = false, no_label = false,
       no_training_summary = false, timestamp = false;
  bool forward_stdin = false, pty = false, verbose = false, help = false, version = false;
  bool mpi = false, check_build = false;
};

// Every option of hvrun; what is typed for it goes to raw, which must outlive the app's parsing.
void add_options(CLI::App& app, RawOptions& raw);

}  // namespace hv::launcher
