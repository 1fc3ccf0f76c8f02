// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/scheduler.h"

namespace hv::launcher {
namespace {

struct Scheduler {
  const char* name;
  std::optional<HostList> (*hosts)(const Environment&, const ReadFile&);
};

// The MPI operator last: its variables are MPI's own, and people set them elsewhere, too.
constexpr Scheduler kSchedulers[] = {
    {"Slurm", hosts_of_slurm},
    {"PBS", hosts_of_pbs},
    {"LSF", hosts_of_lsf},
    {"SGE", hosts_of_sge},
    {"the MPI operator", hosts_of_mpi_operator},
};

}  // namespace

std::optional<SchedulerHosts> hosts_of_scheduler(const Environment& environment,
                                                 const ReadFile& read) {
  for (const Scheduler& scheduler : kSchedulers)
    if (auto hosts = scheduler.hosts(environment, read)) {
      hosts->scheduler = scheduler.name;
      return SchedulerHosts{scheduler.name, std::move(*hosts)};
    }
  return std::nullopt;
}

}  // namespace hv::launcher
