// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/mpi/mpi_exchange.h"

#include <climits>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <thread>

#include "runtime/backend/mpi/mpi_process.h"
#include "src/base/clock.h"
#include "src/base/log.h"

namespace hv::mpi {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{1};
constexpr const char* kDoing = "meet the other ranks";

}  // namespace

Status MpiExchange::open(const void* communicator, std::unique_ptr<Exchange>* made) {
  MpiProcess& process = MpiProcess::of_process();
  if (Status status = process.begin(true); !status.ok()) return status;
  std::unique_ptr<MpiExchange> one(new MpiExchange);
  Status status;
  process.within([&] { status = one->duplicate(communicator); });
  if (status.ok()) *made = std::move(one);
  return status;
}

// Of its own: messages of the program's do not meet ours.
Status MpiExchange::duplicate(const void* communicator) {
  MPI_Comm from = MPI_COMM_WORLD;
  if (communicator != nullptr) std::memcpy(&from, communicator, sizeof from);
  if (from == MPI_COMM_NULL)
    return {StatusCode::kArgument,
            "join the job: the communicator is MPI_COMM_NULL on this rank; try: call hvd.init or "
            "hvrun_init on those ranks alone that it has"};
  int is_inter = 0;
  if (MPI_Comm_test_inter(from, &is_inter) != MPI_SUCCESS || is_inter != 0)
    return {StatusCode::kArgument, "join the job: the communicator is none within one group"};
  if (Status status = check(MPI_Comm_dup(from, &communicator_), kDoing); !status.ok())
    return status;
  MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(communicator_, &rank_);
  MPI_Comm_size(communicator_, &size_);
  return Status::success();
}

MpiExchange::~MpiExchange() {
  MpiProcess& process = MpiProcess::of_process();
  process.post([&process, communicator = communicator_] { process.free(communicator); });
  process.settle();  // the program may end MPI next
}

Status MpiExchange::await(MPI_Request request, const WaitLimits& limits) {
  const TimePoint start = now();
  bool is_told = limits.stall.count() == 0;
  for (;;) {
    int is_done = 0;
    Status status;
    MpiProcess::of_process().within(
        [&] { status = check(MPI_Test(&request, &is_done, MPI_STATUS_IGNORE), kDoing); });
    if (!status.ok() || is_done != 0) return status;
    const auto waited = now() - start;
    if (waited > limits.timeout)
      return {StatusCode::kSystem,
              std::string(kDoing) +
                  " of the MPI communicator: not all have come; try: let every "
                  "rank of it call hvd.init() or hvrun_init"};
    if (!is_told && waited > limits.stall) {
      is_told = true;
      HV_LOG(kWarn, "rendezvous") << "rank " << rank_ << " waits for other ranks of the MPI "
                                  << "communicator, which have not called hvd.init() yet";
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

Status MpiExchange::gather(const std::string& mine, const WaitLimits& limits,
                           std::vector<std::string>* all) {
  const auto members = static_cast<std::size_t>(size_);
  if (mine.size() > INT_MAX / members)
    return {StatusCode::kSystem, std::string(kDoing) + ": too much to tell them"};
  const int own = static_cast<int>(mine.size());
  std::vector<int> sizes(members), starts(members);
  MPI_Request request = MPI_REQUEST_NULL;
  Status status;
  const auto asked = [&](auto&& call) {
    MpiProcess::of_process().within([&] { status = check(call(), kDoing); });
    if (status.ok()) status = await(request, limits);
    return status.ok();
  };
  if (!asked([&] {
        return MPI_Iallgather(&own, 1, MPI_INT, sizes.data(), 1, MPI_INT, communicator_, &request);
      }))
    return status;
  std::partial_sum(sizes.begin(), sizes.end() - 1, starts.begin() + 1);
  std::string together(
      static_cast<std::size_t>(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0})), '\0');
  if (!asked([&] {
        return MPI_Iallgatherv(mine.data(), own, MPI_BYTE, together.data(), sizes.data(),
                               starts.data(), MPI_BYTE, communicator_, &request);
      }))
    return status;
  all->clear();
  for (std::size_t rank = 0; rank < members; ++rank)
    all->push_back(together.substr(static_cast<std::size_t>(starts[rank]),
                                   static_cast<std::size_t>(sizes[rank])));
  return Status::success();
}

}  // namespace hv::mpi
