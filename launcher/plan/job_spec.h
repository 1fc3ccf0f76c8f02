// JobSpec: the job that the user requests, parsed from the command line. A value; no I/O.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
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

// Limit for each probe of a check, because a user waits for it.
constexpr Duration kProbeTimeout = std::chrono::seconds(5);

// --spawner: what starts agents on hosts.
enum class SpawnerChoice { kAuto, kSsh, kSrun };

// --wire-mpi: the interfaces by which MPI programs find each other.
enum class WireMpi { kAuto, kNone, kPmix, kPmi, kBoth };

enum class PlanFormat { kText, kJson };

// --dry-run: what hvrun does instead of a launch.
enum class DryRun {
  kNo,
  kOffline,  // print the plan, connect to no host
  kHosts,    // check the hosts, start no rank
};

// The first program has the first ranks, and so on.
struct ProgramSpec {
  std::vector<std::string> argv;    // never empty for a launch
  std::string working_directory{};  // absolute
  int ranks = 0;                    // 0: all ranks of the job run this program
  Exports exports{};                // beats the job's
  std::string real_directory{};     // working_directory without symbolic links; empty: has none
};

// Which slot gets which rank, GPUs and cores.
struct PlacementSpec {
  MapRule map_by;
  RankBy rank_by = RankBy::kPlacement;
  int gpus_per_rank = 1;
  bool gpus_are_asked_for = false;  // --gpus-per-rank is given: a rank without a GPU is an error
  bool oversubscribe = false;
  BindTo bind_to = BindTo::kAuto;
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
  SpawnerChoice spawner = SpawnerChoice::kAuto;
  Duration start_timeout = std::chrono::seconds(30);
  Duration inventory_timeout = std::chrono::seconds(20);
};

// The variables of ranks, and how they find each other.
struct EnvironmentSpec {
  Exports exports;  // -x for all ranks
  bool clean_environment = false;
  int master_port = 0;
  bool hold_port = true;
  WireMpi wire_mpi = WireMpi::kAuto;
  bool mpi_first = false;      // --mpi: HVRUN_BACKEND begins with mpi
  bool horovod_names = false;  // ranks get HOROVOD_RANK and its kin, as horovodrun sets them
  std::uint32_t umask = 022;   // of the ranks
};

// The ranks' standard streams, and the files that hvrun writes.
struct OutputSpec {
  bool label = true;
  bool label_has_host = false;   // --label host
  bool training_summary = true;  // printed; the summary file has it in any case
  bool timestamp = false;
  std::vector<int> shown_ranks{};  // on the console, ascending; empty: all
  std::string output_directory;
  std::optional<int> stdin_rank{};  // gets standard input; the others get /dev/null
  bool pty = false;
  std::string summary_file;
  std::optional<int> result_fd{};  // rank 0's results are written to this descriptor of hvrun

  bool shows(int rank) const {
    return shown_ranks.empty() || std::binary_search(shown_ranks.begin(), shown_ranks.end(), rank);
  }
};

struct EndingSpec {
  std::optional<Duration> grace;  // --grace, HVRUN_GRACE; none: it depends on what ends the job
  Duration lost_after = std::chrono::seconds(15);
  std::optional<Duration> timeout;                   // of all attempts together
  int restarts = 0;                                  // how often a failed job starts again, at most
  Duration restart_delay = std::chrono::seconds(1);  // before the first restart
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
  bool allows_nested = false;            // --nested: programs may be launchers
  std::optional<int> ranks;              // of all programs; none: one per slot
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
