// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/nccl_backend.h"

#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "runtime/backend/gpu/gpu_choice.h"
#include "runtime/backend/nccl/ends.h"
#include "runtime/backend/nccl/nccl_collective.h"
#include "runtime/backend/nccl/operations.h"
#include "runtime/device/cuda/cuda_accelerator.h"
#include "src/base/boot_id.h"
#include "src/base/environment.h"
#include "src/base/knob.h"
#include "src/base/log.h"
#include "src/contract/runtime_knobs.h"

namespace hv::nccl {

using runtime::Accelerator;
using runtime::Collective;
using runtime::CollectiveRequest;
using runtime::GpuFacts;
using runtime::GpuMembers;
using runtime::Progress;

namespace {

std::string own_path() {
  Dl_info info{};
  const auto* const here = reinterpret_cast<const void*>(&own_path);
  return ::dladdr(here, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

// The user's own packages are in one, too.
std::vector<std::string> python_environments(const Environment& environment) {
  const std::string home = environment.get_or("HOME", "");
  const std::string users = home.empty() ? "" : home + "/.local";
  return {environment.get_or("VIRTUAL_ENV", ""), environment.get_or("CONDA_PREFIX", ""),
          environment.get_or("PYTHONUSERBASE", users)};
}

bool has_windows(const Library& library) {
  const LibraryFunctions& call = library.call();
  if (library.version() >= kWindowsFrom && call.allocate != nullptr && call.free != nullptr &&
      call.register_window != nullptr && call.deregister_window != nullptr)
    return true;
  HV_LOG(kWarn, "nccl") << "HVRUN_NCCL_WINDOWS=1 has no effect: " << library.path() << " is "
                        << version_text(library.version()) << "; try: NCCL 2.27 or newer";
  return false;
}

// Who wants to see what windows bring must know whether there are any.
void tell_of_windows(const std::vector<GpuFacts>& facts, int self, bool are_there) {
  if (are_there || facts[static_cast<std::size_t>(self)].registers_windows == 0) return;
  const auto without = std::find_if(facts.begin(), facts.end(),
                                    [](const GpuFacts& one) { return one.registers_windows == 0; });
  HV_LOG(kWarn, "nccl") << "HVRUN_NCCL_WINDOWS=1 has no effect here: rank " << without->rank
                        << " has not set it; try: the same on all ranks";
}

// There is no other accelerator.
Status find_device(Accelerator& accelerator, int number, std::shared_ptr<cuda::Device>* device) {
  return static_cast<cuda::CudaAccelerator&>(accelerator).find(number, device);
}

}  // namespace

Status NcclPlugin::open() {
  std::call_once(once_, [this] {
    const Environment environment = Environment::of_process();
    const auto packages = package_folders(own_path(), python_environments(environment));
    const KnobReader knobs(runtime_knobs(), environment);
    opened_ = Library::open(places(knobs.text("HVRUN_NCCL"), packages), &library_);
    asks_to_share_ = knobs.flag("HVRUN_SHARE_GPU");
    shares_gpus_ = opened_.ok() && library_->version() >= kSharesGpusFrom && asks_to_share_;
    registers_windows_ = opened_.ok() && knobs.flag("HVRUN_NCCL_WINDOWS") && has_windows(*library_);
    if (shares_gpus_) set_in_process_if_unset("NCCL_MULTI_RANK_GPU_ENABLE", "1");
  });
  return opened_;
}

Status NcclPlugin::version(std::int32_t* number) {
  Status status = open();
  if (status.ok()) *number = library_->version();
  return status;
}

bool NcclPlugin::carries(const CollectiveRequest& request) const {
  constexpr bool kReducesFloat8 = false;  // newer ones do, on newer GPUs
  return supports_operation(request, kReducesFloat8);
}

Status NcclPlugin::load_kernels(cuda::Device& device,
                                std::shared_ptr<const cuda::Kernels>* kernels) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const cuda::Kernels>& one = kernels_[device.ordinal()];
  if (one == nullptr) {
    Status loaded = device.within([&] { return cuda::Kernels::load(device.driver(), &one); });
    if (!loaded.ok()) return loaded;
  }
  *kernels = one;
  return Status::success();
}

GpuFacts NcclPlugin::look(const std::shared_ptr<Accelerator>& accelerator, int device,
                          bool is_first) {
  GpuFacts facts;
  std::shared_ptr<cuda::Device> gpu;
  std::shared_ptr<const cuda::Kernels> kernels;
  cuda::Uuid uuid{};
  std::string address;
  UniqueId id{};
  Status status = open();
  if (status.ok()) status = find_device(*accelerator, device, &gpu);
  if (status.ok()) status = gpu->identify(&uuid);
  if (status.ok()) status = gpu->locate(&address);
  if (status.ok()) status = load_kernels(*gpu, &kernels);
  if (status.ok() && is_first)
    status = library_->check(library_->call().make_unique_id(&id), "make a communicator's id");
  if (!status.ok()) {
    runtime::put_words(facts.words, status.message);
    return facts;
  }
  facts.is_usable = 1;
  facts.version = library_->version();
  facts.asks_to_share = asks_to_share_;
  facts.shares = shares_gpus_;
  facts.registers_windows = registers_windows_;
  facts.capability = kernels->capability();
  std::memcpy(facts.gpu, uuid.bytes, sizeof facts.gpu);
  runtime::put_words(facts.card, boot_id() + " " + address);
  std::memcpy(facts.meeting, id.bytes, sizeof facts.meeting);
  return facts;
}

std::unique_ptr<runtime::Backend> NcclPlugin::make(const std::shared_ptr<Accelerator>& accelerator,
                                                   const GpuMembers& members,
                                                   runtime::Backend& host) {
  const std::lock_guard lock(mutex_);
  return std::make_unique<NcclBackend>(library_, kernels_.at(members.device), accelerator, members,
                                       host);
}

bool NcclPlugin::await_ends(TimePoint deadline) { return Ends::of_process().await(deadline); }

// Makes the communicator, which takes as long as NCCL needs for its connections.
class NcclBackend::Preparation : public Collective {
 public:
  explicit Preparation(NcclBackend& backend) : backend_(backend) {
    std::shared_ptr<cuda::Device> device;
    status_ = find_device(*backend.accelerator_, backend.device_, &device);
    if (status_.ok()) status_ = LaneStreams::open(*device, &streams_);
    if (status_.ok())
      status_ = Communicator::begin(backend.library_, std::move(device), backend.id_,
                                    backend.members_, backend.self_, backend.job_, &made_);
  }

  Progress advance() override {
    if (status_.ok()) status_ = made_->poll("make a communicator");
    if (status_.code == StatusCode::kInProgress) {
      status_ = Status::success();
      return Progress::kPending;
    }
    if (!status_.ok()) return Progress::kFailed;
    backend_.lane_ =
        std::make_shared<Lane>(std::move(made_), backend_.accelerator_, backend_.kernels_,
                               std::move(streams_), backend_.has_windows_);
    return Progress::kDone;
  }
  Status status() const override { return status_; }
  runtime::Attention attention() const override { return runtime::Attention::kPolled; }

 private:
  NcclBackend& backend_;
  LaneStreams streams_;
  std::unique_ptr<Communicator> made_;
  Status status_;
};

NcclBackend::NcclBackend(std::shared_ptr<const Library> library,
                         std::shared_ptr<const cuda::Kernels> kernels,
                         std::shared_ptr<Accelerator> accelerator, const GpuMembers& members,
                         runtime::Backend& host)
    : library_(std::move(library)),
      kernels_(std::move(kernels)),
      accelerator_(std::move(accelerator)),
      device_(members.device),
      members_(static_cast<int>(members.facts.size())),
      self_(members.self),
      reduces_float8_(can_reduce_float8(members.facts)),
      has_windows_(std::all_of(members.facts.begin(), members.facts.end(),
                               [](const GpuFacts& one) { return one.registers_windows != 0; })),
      id_(std::bit_cast<UniqueId>(members.facts.front().meeting)),
      job_(members.job),
      host_(host) {
  tell_of_windows(members.facts, members.self, has_windows_);
}

NcclBackend::~NcclBackend() = default;

bool NcclBackend::supports(const CollectiveRequest& request) const {
  return request.memory == runtime::MemoryKind::kCuda &&
         supports_operation(request, reduces_float8_);
}

std::unique_ptr<Collective> NcclBackend::prepare(const CollectiveRequest& /*first*/) {
  return lane_ != nullptr ? nullptr : std::make_unique<Preparation>(*this);
}

Status NcclBackend::check_device(const CollectiveRequest& request, int device) const {
  return supports(request) ? check_own_device(device_, device) : Status::success();
}

std::unique_ptr<Collective> NcclBackend::start(CollectiveRequest request) {
  return start_operation(lane_, std::move(request), host_);
}

Status NcclBackend::watch() { return lane_ != nullptr ? lane_->watch() : Status::success(); }

std::string NcclBackend::advice() const {
  return "NCCL_DEBUG=INFO, by which NCCL says on each rank what it does; NCCL_SOCKET_IFNAME where "
         "it takes an interface by which ranks cannot reach each other";
}

bool NcclBackend::abandon() {
  if (lane_ == nullptr) return true;
  lane_->abort();
  return lane_->has_let_go();
}

}  // namespace hv::nccl
