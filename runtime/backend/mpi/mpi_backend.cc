// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/mpi/mpi_backend.h"

#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

#include "runtime/backend/mpi/mpi_collective.h"
#include "runtime/backend/mpi/mpi_exchange.h"
#include "runtime/backend/mpi/mpi_pair.h"
#include "src/base/knob.h"
#include "src/contract/runtime_knobs.h"

namespace hv::mpi {

using runtime::CollectiveRequest;
using runtime::MpiFacts;
using runtime::Progress;

namespace {

// Until the communicator is there, which the lane's bell tells: whoever asked again and again would
// keep the core from the threads that make it.
class Preparation : public runtime::Collective {
 public:
  explicit Preparation(std::shared_ptr<MpiLane> lane) : lane_(std::move(lane)) {}
  Progress advance() override {
    const Status status = lane_->ready();
    if (status.code == StatusCode::kInProgress) return Progress::kPending;
    return status.ok() ? Progress::kDone : Progress::kFailed;
  }
  Status status() const override { return lane_->ready(); }

 private:
  const std::shared_ptr<MpiLane> lane_;
};

// The user's word, else MPI's own.
bool takes_gpu_addresses() {
  const std::string word =
      KnobReader(runtime_knobs(), Environment::of_process()).text("HVRUN_MPI_CUDA");
  if (word != "auto") return word == "always";
#if defined(MPIX_CUDA_AWARE_SUPPORT)
  return MPIX_Query_cuda_support() == 1;
#elif defined(MPIX_GPU_SUPPORT_CUDA)
  int is_supported = 0;
  return MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &is_supported) == MPI_SUCCESS &&
         is_supported != 0;
#else
  return false;
#endif
}

MpiFacts facts_of(const Status& status) {
  MpiFacts facts;
  facts.is_usable = status.ok();
  facts.library = library_text();
  facts.words = status.message;
  return facts;
}

}  // namespace

int MpiBackendPlugin::thread_level() {
  int is_begun = 0, is_ended = 0, level = MPI_THREAD_SINGLE;
  MPI_Initialized(&is_begun);
  MPI_Finalized(&is_ended);
  if (is_begun == 0 || is_ended != 0) return -1;
  MPI_Query_thread(&level);
  if (level == MPI_THREAD_SINGLE) return 0;
  if (level == MPI_THREAD_FUNNELED) return 1;
  return level == MPI_THREAD_SERIALIZED ? 2 : 3;
}

MpiFacts MpiBackendPlugin::inspect(bool is_wired) {
  return facts_of(MpiProcess::of_process().obstacle(is_wired));
}

MpiFacts MpiBackendPlugin::begin() {
  MpiProcess& process = MpiProcess::of_process();
  MpiFacts facts = facts_of(process.begin());
  if (facts.is_usable == 0) return facts;
  facts.has_all_threads = process.has_all_threads();
  // Another thread, which alone may call MPI, would not have the GPU's context.
  facts.is_cuda_aware = facts.has_all_threads && takes_gpu_addresses();
  process.within([&] {
    MPI_Comm_rank(MPI_COMM_WORLD, &facts.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &facts.size);
  });
  return facts;
}

std::unique_ptr<runtime::Backend> MpiBackendPlugin::make(std::vector<int> world_ranks, int self,
                                                         bool is_cuda_aware,
                                                         std::function<void()> ring,
                                                         runtime::PairCarrier** pairs) {
  auto made = std::make_unique<MpiBackend>(
      MpiLane::begin(std::move(world_ranks), self, std::move(ring)), is_cuda_aware);
  *pairs = made.get();
  return made;
}

Status MpiBackendPlugin::open_exchange(const void* communicator, const WaitLimits& limits,
                                       std::function<void(const std::string&)> warn,
                                       std::unique_ptr<Exchange>* made) {
  return MpiExchange::open(communicator, limits, std::move(warn), made);
}

std::unique_ptr<runtime::Collective> MpiBackend::prepare(const CollectiveRequest& /*first*/) {
  if (lane_->ready().ok()) return nullptr;
  return std::make_unique<Preparation>(lane_);
}

std::unique_ptr<runtime::Collective> MpiBackend::start(CollectiveRequest request) {
  return start_operation(lane_, std::move(request));
}

std::unique_ptr<runtime::Collective> MpiBackend::carry(runtime::PairRequest request) {
  return std::make_unique<MpiPair>(lane_, std::move(request));
}

std::string MpiBackend::advice() const {
  return "the log of each rank (HVRUN_LOG_LEVEL=debug), and what MPI says: "
         "OMPI_MCA_btl_base_verbose"
         "=100 for Open MPI, MPICH_DBG or FI_LOG_LEVEL=info for MPICH";
}

}  // namespace hv::mpi
