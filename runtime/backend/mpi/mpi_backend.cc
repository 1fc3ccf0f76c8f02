// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/mpi/mpi_backend.h"

#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif
#include <unistd.h>

#include <climits>
#include <utility>

#include "runtime/backend/mpi/mpi_collective.h"
#include "runtime/backend/mpi/mpi_exchange.h"
#include "src/base/knob.h"
#include "src/contract/runtime_knobs.h"

namespace hv::mpi {

using runtime::CollectiveKind;
using runtime::CollectiveRequest;
using runtime::MpiFacts;
using runtime::Progress;

namespace {

// Until the communicator is there.
class Preparation : public runtime::Collective {
 public:
  explicit Preparation(std::shared_ptr<MpiLane> lane) : lane_(std::move(lane)) {}
  Progress advance() override {
    const Status status = lane_->ready();
    if (status.code == StatusCode::kInProgress) return Progress::kPending;
    return status.ok() ? Progress::kDone : Progress::kFailed;
  }
  Status status() const override { return lane_->ready(); }
  runtime::Attention attention() const override { return runtime::Attention::kPolled; }

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

// One call of MPI's, or messages; nothing is packed or moved aside.
bool moves_by_addresses(const CollectiveRequest& request) {
  if (request.segments.size() != 1) return false;
  if (request.kind != CollectiveKind::kAllgather)
    return request.kind == CollectiveKind::kBroadcast || request.kind == CollectiveKind::kAlltoall;
  std::int64_t elements = 0;
  for (const std::int64_t count : request.counts_by_rank) elements += count;
  return elements * static_cast<std::int64_t>(runtime::element_size(request.type)) <= INT_MAX;
}

MpiFacts facts_of(const Status& status) {
  MpiFacts facts;
  facts.is_usable = status.ok();
  library_text().copy(facts.library, sizeof facts.library - 1);
  ::gethostname(facts.host, sizeof facts.host - 1);
  status.message.copy(facts.words, sizeof facts.words - 1);
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
  facts.is_cuda_aware = takes_gpu_addresses();
  process.within([&] {
    MPI_Comm_rank(MPI_COMM_WORLD, &facts.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &facts.size);
  });
  return facts;
}

std::unique_ptr<runtime::Backend> MpiBackendPlugin::make(std::vector<int> world_ranks, int self,
                                                         bool is_cuda_aware) {
  return std::make_unique<MpiBackend>(MpiLane::begin(std::move(world_ranks), self), is_cuda_aware);
}

Status MpiBackendPlugin::open_exchange(const void* communicator, const WaitLimits& limits,
                                       std::function<void(const std::string&)> warn,
                                       std::unique_ptr<Exchange>* made) {
  return MpiExchange::open(communicator, limits, std::move(warn), made);
}

bool MpiBackend::supports(const CollectiveRequest& request) const {
  const bool is_known = request.kind == CollectiveKind::kBarrier ||
                        request.kind == CollectiveKind::kBroadcast ||
                        request.kind == CollectiveKind::kAllgather ||
                        request.kind == CollectiveKind::kAlltoall || reduces(request.kind);
  if (!is_known || request.memory != runtime::MemoryKind::kHost) return false;
  if (request.is_out_of_reach) return is_cuda_aware_ && moves_by_addresses(request);
  if (!reduces(request.kind)) return true;
  const bool is_wide = request.type == runtime::ElementType::kFloat32 ||
                       request.type == runtime::ElementType::kFloat64;
  const bool compresses = request.compression != runtime::Compression::kNone;
  if (compresses && (request.kind != CollectiveKind::kAllreduce || !is_wide)) return false;
  if (request.reduction == runtime::Reduction::kAdasum) return false;
  if (request.deterministic && is_floating(request.type)) return false;
  const bool scales = request.prescale != 1 || request.postscale != 1 || request.divisor != 1;
  return request.type != runtime::ElementType::kBool || !scales;
}

std::unique_ptr<runtime::Collective> MpiBackend::prepare(const CollectiveRequest& /*first*/) {
  if (lane_->ready().ok()) return nullptr;
  return std::make_unique<Preparation>(lane_);
}

std::unique_ptr<runtime::Collective> MpiBackend::start(CollectiveRequest request) {
  return start_operation(lane_, std::move(request));
}

std::string MpiBackend::advice() const {
  return "the log of each rank (HVRUN_LOG_LEVEL=debug), and what MPI says: "
         "OMPI_MCA_btl_base_verbose"
         "=100 for Open MPI, MPICH_DBG or FI_LOG_LEVEL=info for MPICH";
}

}  // namespace hv::mpi
