// SPDX-License-Identifier: Apache-2.0
#include "src/rendezvous/launcher_exchange.h"

#include <fcntl.h>

#include "src/base/text.h"
#include "src/rendezvous/pmi_exchange.h"
#include "src/rendezvous/slurm_step.h"

namespace hv {
namespace {

Status open_pmi(const Environment& environment, std::unique_ptr<Exchange>* exchange) {
  const auto number = [&](const char* name) {
    return parse_integer(environment.get_or(name, "")).value_or(-1);
  };
  const std::int64_t fd = number("PMI_FD"), rank = number("PMI_RANK"), size = number("PMI_SIZE");
  if (fd < 0 || fd > 1 << 20 || rank < 0 || rank >= size || size > 1 << 24)
    return {StatusCode::kContract,
            "join the job: PMI_FD, PMI_RANK and PMI_SIZE do not go together; start the program "
            "with hvrun, or by a launcher that sets them"};
  // Its own descriptor: the launcher's stays as it is.
  UniqueFd socket(::fcntl(static_cast<int>(fd), F_DUPFD_CLOEXEC, 0));
  if (!socket)
    return {StatusCode::kContract, "join the job: PMI_FD=" + std::to_string(fd) +
                                       " is not open in this process: a program in between has "
                                       "closed it; start this one itself by the launcher"};
  return PmiExchange::open(std::move(socket), static_cast<int>(rank), static_cast<int>(size),
                           exchange);
}

// torchrun's workers inherit the variables of the one process that srun or mpirun has started.
Status check_rank(const Environment& environment, const char* name) {
  const auto outer = environment.get(name), inner = environment.get("RANK");
  if (!outer || !inner || *outer == *inner) return Status::success();
  return {StatusCode::kContract,
          std::string("join the job: ") + name + "=" + printable(*outer) +
              " and RANK=" + printable(*inner) +
              " are of two launchers, one started by the other; start the program by one of them, "
              "best by hvrun"};
}

// Then nobody need be met, and nothing of the launcher's is touched.
bool is_said_to_be_alone(const Environment& environment) {
  for (const char* name : {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (environment.has(name)) return environment.get_or(name, "") == "1";
  return false;
}

}  // namespace

Status open_launcher_exchange(const Environment& environment, const MeetingTerms& meeting,
                              std::unique_ptr<Exchange>* exchange) {
  if (is_said_to_be_alone(environment)) return Status::success();
  const bool has_pmix = environment.has("PMIX_NAMESPACE"), has_pmi = environment.has("PMI_FD");
  if (has_pmix || has_pmi) {
    const char* const name = has_pmix ? "PMIX_RANK" : "PMI_RANK";
    if (Status status = check_rank(environment, name); !status.ok()) return status;
    return has_pmix ? open_pmix(environment.get_or("PMIX_PREFIX", ""), exchange)
                    : open_pmi(environment, exchange);
  }
  const auto step = slurm_step(environment);
  if (!step) return Status::success();
  if (Status status = check_rank(environment, "SLURM_PROCID"); !status.ok()) return status;
  return open_slurm_step(*step, environment, meeting, exchange);
}

}  // namespace hv
