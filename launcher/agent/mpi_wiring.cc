// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/mpi_wiring.h"

#include <utility>

#include "launcher/agent/helper_program.h"
#include "src/process/own_file.h"

namespace hv::launcher {

void MpiWiring::start_pmix(const Environment& environment, const wire::WiringRequest& request,
                           std::uint32_t host,
                           std::function<void(const wire::WiringReply&)> on_ready) {
  pmix_ = std::make_unique<PmixRun>(
      loop_, environment, own_folder() + "/", request, host,
      PmixCallbacks{std::move(on_ready), callbacks_.on_fence, callbacks_.on_note});
}

void MpiWiring::start_pmi(const wire::Launch& launch, const std::string& job_id) {
  if (!launch.pmi) return;
  size_ = launch.pmi->size;
  std::map<std::uint32_t, std::uint32_t> applications;
  for (const wire::LaunchRank& rank : launch.ranks) applications[rank.rank] = rank.program;
  pmi_ = std::make_unique<PmiServer>(
      loop_, PmiMeeting(*launch.pmi, "hvrun-" + job_id, std::move(applications)),
      PmiServer::Callbacks{callbacks_.on_fence, callbacks_.on_abort});
}

Status MpiWiring::prepare(std::uint32_t rank, Command* command, UniqueFd* passed) {
  if (!pmix_ && !pmi_) return Status::success();
  Environment environment = Environment::from_entries(command->environment);
  if (pmix_) pmix_->prepare(rank, &environment);
  Status status;
  if (pmi_) status = pmi_->connect(rank, size_, passed, &environment);
  command->environment = environment.entries();
  return status;
}

bool MpiWiring::pass(const wire::FenceOut& out) {
  if (out.epoch < wire::kEpochsOfRanks) return false;
  if (out.epoch == wire::kPmixEpoch && pmix_) pmix_->pass(out);
  if (out.epoch == wire::kPmiEpoch && pmi_) pmi_->pass(out);
  return true;
}

void MpiWiring::rank_ended(std::uint32_t rank) {
  if (pmi_) pmi_->rank_ended(rank);
}

void MpiWiring::look_for_end() {
  if (pmix_) pmix_->look_for_end();
}

void MpiWiring::child_ended(pid_t pid, const ExitStatus& status) {
  if (pmix_) pmix_->child_ended(pid, status);
}

void MpiWiring::let_go() {
  if (pmix_) pmix_->let_go();
}

void MpiWiring::end() {
  pmix_.reset();
  pmi_.reset();
}

}  // namespace hv::launcher
