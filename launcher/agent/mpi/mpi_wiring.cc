// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/mpi/mpi_wiring.h"

#include <utility>

#include "src/process/command.h"

namespace hv::launcher {

void MpiWiring::start_pmix(const Environment& environment, const wire::WiringRequest& request,
                           std::function<void(const wire::WiringReply&)> on_ready) {
  pmix_ = std::make_unique<PmixRun>(loop_, environment, own_folder() + "/", request,
                                    PmixCallbacks{std::move(on_ready), callbacks_.on_fence,
                                                  callbacks_.on_note, [this] { update_waits(); }});
}

void MpiWiring::start_pmi(const wire::Launch& launch, const std::string& job_id) {
  if (!launch.pmi) return;
  size_ = launch.pmi->size;
  std::map<std::uint32_t, std::uint32_t> applications;
  for (const wire::LaunchRank& rank : launch.ranks) applications[rank.rank] = rank.program;
  pmi_ = std::make_unique<PmiServer>(
      loop_, PmiRendezvous(*launch.pmi, "hvrun-" + job_id, std::move(applications)),
      PmiServer::Callbacks{callbacks_.on_fence, callbacks_.on_abort, [this] { update_waits(); }});
}

Status MpiWiring::prepare(std::uint32_t rank, RankEnvironment* environment, UniqueFd* passed) {
  if (pmix_) pmix_->prepare(rank, environment);
  return pmi_ ? pmi_->connect(rank, size_, passed, environment) : Status::success();
}

bool MpiWiring::pass(const wire::FenceOut& out) {
  if (out.epoch < wire::kEpochsOfRanks) return false;
  if (out.epoch == wire::kPmixEpoch && pmix_) pmix_->pass(out);
  if (out.epoch == wire::kPmiEpoch && pmi_) pmi_->pass(out);
  return true;
}

MpiEnds MpiWiring::rank_ended(std::uint32_t rank) {
  MpiEnds ends;
  if (pmi_) ends.pmi = pmi_->rank_ended(rank);
  if (pmix_) ends.pmix = pmix_->rank_ended(rank);
  return ends;
}

bool MpiWiring::is_waiting(std::uint32_t rank) const {
  return (pmi_ && pmi_->rendezvous().is_waiting(rank)) ||
         (pmix_ && pmix_->rendezvous().is_waiting(rank));
}

std::vector<std::uint32_t> MpiWiring::beginning(std::uint32_t epoch) const {
  if (epoch == wire::kPmiEpoch && pmi_) return pmi_->rendezvous().beginning();
  if (epoch == wire::kPmixEpoch && pmix_) return pmix_->rendezvous().beginning();
  return {};
}

void MpiWiring::pause_waits(bool is_paused) {
  if (beginning_) beginning_->pause(is_paused);
  if (later_) later_->pause(is_paused);
}

// Only a wait in the beginning of MPI ends the job: a rank may wait in MPI_Finalize for hours until
// the others have done their work.
void MpiWiring::limit_waits(StallLimits limits) {
  const auto report_as = [this](wire::Meeting meeting) {
    return [this, meeting](wire::FenceStalled stall) {
      stall.meeting = meeting;
      callbacks_.on_stall(stall);
    };
  };
  beginning_.emplace(loop_, limits, report_as(wire::Meeting::kMpiInit));
  later_.emplace(loop_, StallLimits{limits.warning, Duration::zero()},
                 report_as(wire::Meeting::kMpi));
}

void MpiWiring::update_waits() {
  const bool pmi_waits = pmi_ && pmi_->rendezvous().has_waiting_rank();
  const bool pmix_waits = pmix_ && pmix_->rendezvous().has_waiting_rank();
  const bool is_beginning =
      (pmi_ && pmi_->rendezvous().is_beginning()) || (pmix_ && pmix_->rendezvous().is_beginning());
  if (beginning_) beginning_->update(is_beginning);
  if (later_) later_->update((pmi_waits || pmix_waits) && !is_beginning);
  report_begun(wire::kPmiEpoch);
  report_begun(wire::kPmixEpoch);
  report_missing(wire::kPmiEpoch, pmi_waits && pmi_->rendezvous().has_missing_rank());
  report_missing(wire::kPmixEpoch, pmix_waits && pmix_->rendezvous().has_missing_rank());
}

void MpiWiring::report_missing(std::uint32_t epoch, bool is_missing) {
  if (is_missing && missed_.insert(epoch).second) callbacks_.on_missed({epoch});
}

void MpiWiring::report_begun(std::uint32_t epoch) {
  if (begun_.count(epoch) > 0 || beginning(epoch).empty()) return;
  begun_.insert(epoch);
  callbacks_.on_begun({epoch});
}

void MpiWiring::let_go() {
  if (pmix_) pmix_->let_go();
}

void MpiWiring::close() {
  pmix_.reset();
  pmi_.reset();
  beginning_.reset();
  later_.reset();
}

}  // namespace hv::launcher
