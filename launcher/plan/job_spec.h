// JobSpec: what the user asked for, after the command line has been understood. A value; no I/O.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/allocation/allocate.h"
#include "launcher/plan/core_binding.h"
#include "launcher/plan/exports.h"
#include "launcher/plan/placement.h"
#include "src/base/clock.h"

namespace hv::launcher {

// Each probe of a check: a user waits for it.
constexpr Duration kProbeTimeout = std::chrono::seconds(5);

// --spawner: by what agents are started on hosts.
enum class SpawnerChoice { kByItself, kSsh, kSrun };

// --wire-mpi: by what MPI programs find each other.
enum class WireMpi { kByItself, kNone, kPmix, kPmi, kBoth };

enum class PlanFormat { kText, kJson };

// --dry-run: what is done in a launch's place.
enum class DryRun {
  kNo,
  kOffline,  // the plan is printed, and nobody asked
  kHosts,    // hosts are asked, and nothing is started
};

// One of the programs of a job; ranks have them in order.
struct ProgramSpec {
  std::vector<std::string> argv;    // never empty for a launch
  std::string working_directory{};  // absolute
  int ranks = 0;                    // of several programs each has its number
  Exports exports{};                // -x of its own, which beats the job's
};

// Which slot gets which rank, GPUs and cores.
struct PlacementSpec {
  MapRule map_by;
  RankBy rank_by = RankBy::kPlacement;
  int gpus_per_rank = 1;
  bool gpus_are_asked_for = false;  // --gpus-per-rank is given: a rank without a GPU is an error
  bool oversubscribe = false;
  BindTo bind_to = BindTo::kByItself;
  bool sees_only_its_gpus = false;  // --gpu-bind=visible
  bool nic_bind = false;
};

// How agents are started on hosts.
struct AccessSpec {
  std::uint16_t ssh_port = 0;
  std::string ssh_user;
  std::string ssh_identity_file;
  bool ssh_accept_new = false;
  std::string remote_shell;  // --rsh
  SpawnerChoice spawner = SpawnerChoice::kByItself;
  Duration start_timeout = std::chrono::seconds(30);
  Duration inventory_timeout = std::chrono::seconds(20);
};

// What ranks get to find each other, and by -x.
struct EnvironmentSpec {
  Exports exports;  // -x for all ranks
  bool clean_environment = false;
  int master_port = 0;
  bool hold_port = true;
  WireMpi wire_mpi = WireMpi::kByItself;
  bool mpi_first = false;  // --mpi: HVRUN_BACKEND begins with mpi
};

// The ranks' standard streams, and the files that hvrun writes.
struct OutputSpec {
  bool label = true;
  bool training_summary = true;  // printed; the summary file has it in any case
  bool timestamp = false;
  std::string output_directory;
  bool forward_stdin = false;
  bool pty = false;
  std::string summary_file;
};

struct EndingSpec {
  Duration grace = std::chrono::seconds(3);
  Duration lost_after = std::chrono::seconds(15);
  std::optional<Duration> timeout;
};

// What hvrun prints about the job, and whether it starts it.
struct ReportSpec {
  DryRun dry_run = DryRun::kNo;
  PlanFormat format = PlanFormat::kText;
  std::string topology_svg;   // file; empty: none
  std::string topology_html;  // file; empty: none
  bool verbose = false;
  bool report_bindings = false;
};

struct JobSpec {
  std::vector<ProgramSpec> programs;
  std::optional<int> ranks;              // in all; none: one per slot
  bool names_working_directory = false;  // --wdir is given: a check without a program checks it
  HostWishes hosts;
  PlacementSpec placement;
  AccessSpec access;
  EnvironmentSpec environment;
  OutputSpec output;
  EndingSpec ending;
  ReportSpec report;
};

}  // namespace hv::launcher
