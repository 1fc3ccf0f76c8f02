// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/events/missing_ranks.h"

namespace hv::launcher {

void MissingRanks::add_never_joined(int rank, std::string text) {
  never_joined_.emplace_back(rank, std::move(text));
  announce_never_joined();
}

void MissingRanks::add_ended(const wire::Exited& exited) {
  for (const auto& [epoch, mpi_end] :
       {std::pair(wire::kPmiEpoch, exited.pmi_end), std::pair(wire::kPmixEpoch, exited.pmix_end)})
    if (mpi_end != wire::MpiEnd::kInOrder)
      out_of_mpi_[epoch].emplace(static_cast<int>(exited.rank), mpi_end);
  report_missing_in_mpi();
}

void MissingRanks::add_waiting(std::uint32_t epoch) {
  waiting_epochs_.insert(epoch);
  report_missing_in_mpi();
}

void MissingRanks::check_fences() {
  announce_never_joined();
  report_missing_in_mpi();
}

void MissingRanks::announce_never_joined() {
  if (!job_.fences || !job_.fences->is_any_open()) return;
  for (const auto& [rank, text] : std::exchange(never_joined_, {})) announce_end(rank, text);
}

void MissingRanks::report_missing_in_mpi() {
  for (const auto& [epoch, ranks] : out_of_mpi_) {
    if (!waiting_epochs_.count(epoch) && !(job_.fences && job_.fences->is_open(epoch))) continue;
    const auto& [rank, end] = *ranks.begin();
    job_.policy->missed_in_mpi(rank, end == wire::MpiEnd::kNotBegun ? "MPI_Init" : "MPI_Finalize",
                               now());
  }
}

void MissingRanks::announce_end(int rank, const std::string& text) {
  const Host& host = job_.host_of(rank);
  announce_loss(rank, host.id, text + ", on host " + host.target.name);
}

void MissingRanks::announce_loss(int rank, HostId host, const std::string& reason) {
  for (const Host& other : job_.members())
    if (other.id != host) other.send(wire::RankDied{static_cast<std::uint32_t>(rank), reason});
}

}  // namespace hv::launcher
