// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/mpi/mpi_exchange.h"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <thread>

#include "runtime/backend/mpi/mpi_process.h"
#include "src/base/clock.h"

namespace hv::mpi {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{1};
constexpr const char* kDoing = "meet the other ranks";
constexpr const char* kWhatAllDo =
    "let every rank of it call hvd.init() or hvrun_init, and see that HVRUN_BACKEND and HVRUN_MPI "
    "are alike on all hosts (Open MPI's mpirun passes them on by -x HVRUN_BACKEND alone)";

// What MPI reads and writes while ranks tell each other something.
struct Gathering {
  std::string mine;
  int own = 0;
  std::vector<int> sizes, starts;  // by rank
  std::string together;
};

// MPI has it still, whatever becomes of the others.
template <class T>
void keep_for_ever(const std::shared_ptr<T>& memory) {
  (void)new std::shared_ptr<T>(memory);
}

}  // namespace

Status MpiExchange::open(const void* communicator, const WaitLimits& limits,
                         std::function<void(const std::string&)> warn,
                         std::unique_ptr<Exchange>* made) {
  MpiProcess& process = MpiProcess::of_process();
  Status status = process.obstacle(true);
  if (status.ok()) status = process.begin();
  if (!status.ok()) return status;
  std::unique_ptr<MpiExchange> one(new MpiExchange(std::move(warn)));
  status = one->duplicate(communicator, limits);
  if (status.ok()) *made = std::move(one);
  return status;
}

// Of its own: messages of the program's do not meet ours.
Status MpiExchange::duplicate(const void* communicator, const WaitLimits& limits) {
  MPI_Comm from = MPI_COMM_WORLD;
  if (communicator != nullptr) std::memcpy(&from, communicator, sizeof from);
  if (from == MPI_COMM_NULL)
    return {StatusCode::kArgument,
            "join the job: the communicator is MPI_COMM_NULL on this rank; try: call hvd.init or "
            "hvrun_init on those ranks alone that it has"};
  MpiProcess& process = MpiProcess::of_process();
  int is_inter = 1;
  MPI_Request request = MPI_REQUEST_NULL;
  const auto copy = std::make_shared<MPI_Comm>(MPI_COMM_NULL);
  Status status;
  process.within([&] {
    status = check(MPI_Comm_test_inter(from, &is_inter), kDoing);
    if (!status.ok() || is_inter != 0) return;
    MPI_Comm_rank(from, &rank_);
    MPI_Comm_size(from, &size_);
    status = check(MPI_Comm_idup(from, copy.get(), &request), kDoing);
  });
  if (status.ok() && is_inter != 0)
    return {StatusCode::kArgument, "join the job: the communicator is none within one group"};
  if (status.ok()) status = await(request, limits);
  if (!status.ok()) {
    keep_for_ever(copy);
    return status;
  }
  communicator_ = *copy;
  process.within([&] { MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN); });
  return status;
}

MpiExchange::~MpiExchange() {
  MpiProcess& process = MpiProcess::of_process();
  if (communicator_ == MPI_COMM_NULL) return;
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
      return {
          StatusCode::kSystem,
          std::string(kDoing) + " of the MPI communicator: not all have come; try: " + kWhatAllDo};
    if (!is_told && waited > limits.stall) {
      is_told = true;
      warn_("rank " + std::to_string(rank_) + " waits for other ranks of its MPI communicator of " +
            std::to_string(size_) + ", which do not join the job; try: " + kWhatAllDo);
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

Status MpiExchange::gather(const std::string& mine, const WaitLimits& limits,
                           std::vector<std::string>* all) {
  if (Status status = MpiProcess::of_process().obstacle(true); !status.ok()) return status;
  const auto members = static_cast<std::size_t>(size_);
  const auto room = std::make_shared<Gathering>();
  room->mine = mine;
  room->own = static_cast<int>(std::min<std::size_t>(mine.size(), INT_MAX));
  room->sizes.resize(members);
  room->starts.resize(members);
  MPI_Request request = MPI_REQUEST_NULL;
  Status status;
  const auto asked = [&](auto&& call) {
    MpiProcess::of_process().within([&] { status = check(call(), kDoing); });
    if (status.ok()) status = await(request, limits);
    if (!status.ok()) keep_for_ever(room);
    return status.ok();
  };
  if (!asked([&] {
        return MPI_Iallgather(&room->own, 1, MPI_INT, room->sizes.data(), 1, MPI_INT, communicator_,
                              &request);
      }))
    return status;
  const auto sum = std::accumulate(room->sizes.begin(), room->sizes.end(), std::int64_t{0});
  if (sum > INT_MAX)  // so for all of them
    return {StatusCode::kSystem, std::string(kDoing) + ": there is too much to tell"};
  std::partial_sum(room->sizes.begin(), room->sizes.end() - 1, room->starts.begin() + 1);
  room->together.resize(static_cast<std::size_t>(sum));
  if (!asked([&] {
        return MPI_Iallgatherv(room->mine.data(), room->own, MPI_BYTE, room->together.data(),
                               room->sizes.data(), room->starts.data(), MPI_BYTE, communicator_,
                               &request);
      }))
    return status;
  all->clear();
  for (std::size_t rank = 0; rank < members; ++rank)
    all->push_back(room->together.substr(static_cast<std::size_t>(room->starts[rank]),
                                         static_cast<std::size_t>(room->sizes[rank])));
  return Status::success();
}

}  // namespace hv::mpi
