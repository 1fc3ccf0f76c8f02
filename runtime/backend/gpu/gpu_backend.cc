// SPDX-License-Identifier: Apache-2.0
//
//   kTell     what each member has is on its way to all, over the host's backend
//   kPrepare  the plugin's backend does what its first collective needs
#include "runtime/backend/gpu/gpu_backend.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/backend/gpu/plugin_library.h"
#include "runtime/collective/carriers.h"
#include "src/base/log.h"

namespace hv::runtime {
namespace {

constexpr const char* kNoStaging =
    "; try: name native in HVRUN_BACKEND, too, which takes such tensors through the host's memory";

// Where the first tensor that lies on a GPU does.
int device_of(const CollectiveRequest& request) {
  for (const Segment& segment : request.segments)
    if (segment.device != kHostDevice) return segment.device;
  return kHostDevice;
}

std::string host_name() {
  char name[sizeof GpuFacts::host] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "(unknown)";
}

}  // namespace

class GpuBackend::Preparation : public Collective {
 public:
  Preparation(GpuBackend& backend, CollectiveRequest first)
      : backend_(backend), first_(std::move(first)), device_(device_of(first_)) {
    members_.facts.resize(static_cast<std::size_t>(backend.members_.size));
    members_.self = backend.members_.rank;
    members_.device = device_;
    own_ = look();
    tell_ = backend.host_.start(facts_request());
  }

  Progress advance() override {
    if (!status_.ok()) return Progress::kFailed;
    return prepare_ != nullptr ? advance(*prepare_) : advance_telling();
  }
  Status status() const override { return status_; }
  Attention attention() const override {
    return prepare_ != nullptr ? prepare_->attention() : Attention::kBell;
  }

 private:
  GpuFacts look() {
    GpuFacts facts;
    facts.is_absent = device_ == kHostDevice;
    const Status status = find_gpu_plugin(&plugin_);
    if (!status.ok()) {
      put_words(facts.words, status.message);
    } else if (!facts.is_absent) {
      facts = plugin_->look(first_.accelerator, device_, members_.self == 0);
    }
    put_words(facts.host, host_name());
    return facts;
  }

  CollectiveRequest facts_request() {
    CollectiveRequest request;
    request.kind = CollectiveKind::kAllgather;
    request.type = ElementType::kUint8;
    constexpr auto kBytes = static_cast<std::int64_t>(sizeof(GpuFacts));
    request.counts_by_rank.assign(members_.facts.size(), kBytes);
    request.segments.push_back({reinterpret_cast<const std::byte*>(&own_),
                                reinterpret_cast<std::byte*>(members_.facts.data()), kBytes,
                                members_.facts.size() * sizeof(GpuFacts)});
    return request;
  }

  Progress advance_telling() {
    const Progress progress = advance(*tell_);
    if (progress != Progress::kDone) return progress;
    const GpuChoice choice = choose_gpu_way(members_.facts);
    const bool is_nobody = !backend_.staged_ && choice.way == GpuChoice::Way::kStaged;
    if (is_nobody) backend_.refusal_ = choice.words + kNoStaging;
    if (choice.teller == members_.self && choice.way == GpuChoice::Way::kStaged && !is_nobody) {
      HV_LOG(kWarn, "backend") << "tensors on GPUs go through the host's memory, which is slow: "
                               << choice.words;
    }
    backend_.is_chosen_ = choice.way != GpuChoice::Way::kStagedNow;
    backend_.goes_unprepared_ = !backend_.is_chosen_;
    if (choice.way == GpuChoice::Way::kRefused) backend_.refusal_ = choice.words;
    if (choice.way != GpuChoice::Way::kPlugin) return Progress::kDone;
    if (members_.self == 0) {
      HV_LOG(kInfo, "backend") << "tensors on GPUs go by NCCL "
                               << version_words(members_.facts.front().version) << " among "
                               << members_.facts.size() << " ranks";
    }
    backend_.plugged_ = plugin_->make(first_.accelerator, members_, backend_.host_);
    prepare_ = backend_.plugged_->prepare(first_);
    return prepare_ != nullptr ? Progress::kAdvanced : Progress::kDone;
  }

  Progress advance(Collective& step) {
    const Progress progress = step.advance();
    if (progress == Progress::kFailed) status_ = step.status();
    return progress;
  }

  GpuBackend& backend_;
  const CollectiveRequest first_;
  const int device_;
  GpuPlugin* plugin_ = nullptr;
  GpuFacts own_;
  GpuMembers members_;
  std::unique_ptr<Collective> tell_, prepare_;
  Status status_;
};

GpuBackend::GpuBackend(Backend& host, Backend* staging, const Topology& members, bool uses_plugin)
    : host_(host), members_(members), is_chosen_(!uses_plugin) {
  if (staging == nullptr) return;
  direct_.emplace(*staging, Accelerator::Room::kDevice);
  staged_.emplace(*staging);
}

GpuBackend::~GpuBackend() = default;

bool GpuBackend::supports(const CollectiveRequest& request) const {
  if (staged_) return staged_->supports(request);
  return request.memory != MemoryKind::kHost && (!is_chosen_ || plugged_ != nullptr);
}

std::unique_ptr<Collective> GpuBackend::prepare(const CollectiveRequest& first) {
  if (is_chosen_ || std::exchange(goes_unprepared_, false)) return nullptr;
  return std::make_unique<Preparation>(*this, first);
}

std::unique_ptr<Collective> GpuBackend::start(CollectiveRequest request) {
  if (!refusal_.empty()) return refused(refusal_);
  if (plugged_ != nullptr && plugged_->supports(request))
    return plugged_->start(std::move(request));
  if (direct_ && direct_->supports(request)) return direct_->start(std::move(request));
  if (staged_ && staged_->supports(request)) return staged_->start(std::move(request));
  return refused(std::string("NCCL cannot carry this out") + kNoStaging);
}

void GpuBackend::abandon() {
  if (plugged_ != nullptr) plugged_->abandon();
}

}  // namespace hv::runtime
