// SPDX-License-Identifier: Apache-2.0
//
//   kTell     what each member has is on its way to all, over the host's backend
//   kPrepare  the plugin's backend does what its first collective needs
#include "runtime/backend/gpu/gpu_backend.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

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

const char* words_of(GpuWay way) {
  if (way == GpuWay::kNccl) return "by nccl";
  return way == GpuWay::kAddresses ? "by their addresses" : "through the host's memory";
}

std::string host_name() {
  char name[sizeof GpuFacts::host] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "(unknown)";
}

// Of what takes tensors through the host's memory: one member of a set tells it, all have heard it,
// and another set, or another context of this process, need not. Nor what lies behind it: whoever
// mends the one reason is told of the next.
bool is_news(const std::string& reason, const std::vector<GpuFacts>& facts) {
  static std::mutex mutex;  // guards told
  static auto* const told = new std::set<std::string>;
  const std::lock_guard lock(mutex);
  const bool is_new = told->insert(reason).second;
  for (const GpuFacts& one : facts)
    if (!one.is_usable) told->insert(words_in(one.words));
  return is_new;
}

bool are_of_one_process(const GpuFacts& a, const GpuFacts& b) {
  return a.process == b.process && words_in(a.host) == words_in(b.host);
}

}  // namespace

class GpuBackend::Preparation : public Collective {
 public:
  Preparation(GpuBackend& backend, CollectiveRequest first)
      : backend_(backend), first_(std::move(first)), device_(device_of(first_)) {
    members_.facts.resize(static_cast<std::size_t>(backend.members_.size));
    members_.self = backend.members_.rank;
    members_.device = device_;
    members_.job = backend.job_;
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
      // Where a member had joined nobody has met by them: they hold, and each look begins a
      // meeting that would never end.
      const auto [looked, is_first] = backend_.looked_.try_emplace(device_);
      if (is_first) looked->second = plugin_->look(first_.accelerator, device_, members_.self == 0);
      facts = looked->second;
    }
    facts.rank = backend_.rank_;
    facts.process = static_cast<std::int32_t>(::getpid());
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
    const bool is_slow = choice.way == GpuChoice::Way::kStaged && !is_nobody;
    // The teller's own process hears it from the teller.
    const bool tells = choice.teller == members_.self;
    const bool hears =
        tells ||
        !are_of_one_process(own_, members_.facts.at(static_cast<std::size_t>(choice.teller)));
    if (is_slow && hears && is_news(choice.words, members_.facts) && tells) {
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
    backend_.known_plugged_ = backend_.plugged_.get();
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

GpuBackend::GpuBackend(Backend& host, Backend* staging, const Topology& members, int rank,
                       std::vector<GpuWay> ways, std::shared_ptr<GpuJob> job)
    : host_(host),
      members_(members),
      rank_(rank),
      ways_(std::move(ways)),
      job_(std::move(job)),
      is_chosen_(std::find(ways_.begin(), ways_.end(), GpuWay::kNccl) == ways_.end()) {
  if (staging == nullptr) return;
  direct_ = std::make_unique<StagedBackend>(*staging, Accelerator::Room::kDevice);
  staged_ = std::make_unique<StagedBackend>(*staging);
}

GpuBackend::~GpuBackend() = default;

bool GpuBackend::supports(const CollectiveRequest& request) const {
  if (staged_) return staged_->supports(request);
  const bool has_words = plugged_ != nullptr || !refusal_.empty();  // of its own
  return request.memory != MemoryKind::kHost && (!is_chosen_ || has_words);
}

Backend* GpuBackend::behind(GpuWay way) const {
  if (way == GpuWay::kNccl) return plugged_.get();
  return way == GpuWay::kAddresses ? direct_.get() : staged_.get();
}

bool GpuBackend::comes_before_plugin(const CollectiveRequest& request) const {
  const auto plugin = std::find(ways_.begin(), ways_.end(), GpuWay::kNccl);
  return std::any_of(ways_.begin(), plugin, [&](GpuWay way) {
    const Backend* const one = behind(way);
    return one != nullptr && one->supports(request);
  });
}

// A job that never has anything for the plugin needs no NCCL.
std::unique_ptr<Collective> GpuBackend::prepare(const CollectiveRequest& first) {
  if (is_chosen_ || comes_before_plugin(first) || std::exchange(goes_unprepared_, false))
    return nullptr;
  return std::make_unique<Preparation>(*this, first);
}

Status GpuBackend::check_device(const CollectiveRequest& request, int device) const {
  const Backend* const plugged = known_plugged_;
  return plugged != nullptr && !comes_before_plugin(request)
             ? plugged->check_device(request, device)
             : Status::success();
}

std::unique_ptr<Collective> GpuBackend::start(CollectiveRequest request) {
  for (const GpuWay way : ways_) {
    if (way == GpuWay::kNccl && !refusal_.empty()) return refused(refusal_);
    Backend* const one = behind(way);
    if (one == nullptr || !one->supports(request)) continue;
    HV_LOG(kTrace, "backend") << "what starts lies on GPUs and goes " << words_of(way);
    return one->start(std::move(request));
  }
  return refused((plugged_ != nullptr ? "NCCL cannot carry this out"
                                      : "NCCL begins with a tensor of every rank's, and one has "
                                        "joined without any") +
                 std::string(kNoStaging));
}

bool GpuBackend::abandon() {
  job_->has_failed = true;
  return plugged_ == nullptr || plugged_->abandon();
}

}  // namespace hv::runtime
