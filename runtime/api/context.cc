// Joining and leaving a job.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/context.h"

#include <algorithm>
#include <chrono>

#include "runtime/backend/backend_list.h"
#include "runtime/collective/patience.h"
#include "src/base/bounded_seconds.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/contract/runtime_knobs.h"
#include "src/wire/codec.h"

namespace hv::runtime {
namespace {

using std::chrono::milliseconds;

// After a failure nobody reads anybody's memory, and the survivors leave when they like.
constexpr milliseconds kCloseTimeoutAfterFailure{100};
constexpr const char* kSettingsKey = "engine.settings";

// What must be alike on all ranks is what rank 0's environment says.
struct SharedSettings {
  std::uint64_t cache_capacity = 0;
  std::int64_t fusion_threshold_bytes = 0;
  double stall_seconds = 0;
  bool is_deterministic = false;
  std::string backend;
  template <class Archive>
  void fields(Archive& a) {
    a(cache_capacity);
    a(fusion_threshold_bytes);
    a(stall_seconds);
    a(is_deterministic);
    a(backend);
  }
};

SharedSettings read_settings(const Environment& environment) {
  const KnobReader knobs(runtime_knobs(), environment);
  knobs.check_all();
  SharedSettings settings;
  settings.cache_capacity = static_cast<std::uint64_t>(knobs.integer("HVRUN_CACHE_CAPACITY"));
  settings.fusion_threshold_bytes = knobs.integer("HVRUN_FUSION_THRESHOLD");
  settings.stall_seconds = knobs.seconds("HVRUN_STALL_SECONDS");
  settings.is_deterministic = knobs.flag("HVRUN_DETERMINISTIC");
  settings.backend = knobs.text("HVRUN_BACKEND");
  return settings;
}

// After a fence. A rank that is alone never fences and asks nobody.
Status fetch_settings(Store& store, int size, SharedSettings* settings) {
  if (size == 1) return Status::success();
  std::string bytes;
  if (Status status = store.get(0, kSettingsKey, &bytes); !status.ok()) return status;
  if (decode(bytes, settings)) return Status::success();
  return {StatusCode::kContract,
          "join the job: rank 0's settings are in another form; do all ranks run the same "
          "libhvrun?"};
}

EngineConfig engine_config(const SharedSettings& settings, int epoch) {
  EngineConfig config;
  config.negotiation.epoch = static_cast<std::uint32_t>(epoch);
  config.negotiation.cache_capacity = static_cast<std::size_t>(settings.cache_capacity);
  config.negotiation.fusion_threshold_bytes = settings.fusion_threshold_bytes;
  config.negotiation.stall_limit = bounded_seconds(settings.stall_seconds);
  config.deterministic = settings.is_deterministic;
  return config;
}

// What an operator would ask first: who is here, over what, with which settings.
void log_joined(const ContextParts& parts, const std::vector<std::unique_ptr<Backend>>& backends,
                const SharedSettings& settings, TimePoint begun) {
  if (!log_enabled(LogLevel::kInfo)) return;
  const RankIdentity& who = parts.identity;
  std::vector<std::string> names;
  for (const auto& backend : backends) names.emplace_back(backend->name());
  HV_LOG(kInfo, "runtime") << "joined the job: id=" << who.job_id << " epoch=" << parts.fabric.epoch
                           << " rank=" << who.rank << " size=" << who.size
                           << " local_size=" << who.local_size << " hosts=" << who.cross_size
                           << " backends=" << join(names, ",")
                           << " fusion_threshold=" << settings.fusion_threshold_bytes
                           << " cache_capacity=" << settings.cache_capacity
                           << " stall_seconds=" << settings.stall_seconds
                           << " deterministic=" << settings.is_deterministic
                           << " took_ms=" << 1000 * seconds_since(begun);
}

}  // namespace

Status Context::join(ContextParts parts, std::shared_ptr<Context>* context) {
  const TimePoint begun = now();
  SharedSettings settings = read_settings(parts.environment);
  if (Status status = parts.store->put(kSettingsKey, encode(settings)); !status.ok()) return status;
  Status status;
  auto fabric = connect_fabric(parts.identity, *parts.store, parts.fabric, &status);  // fences
  if (fabric == nullptr) return status;
  if (status = fetch_settings(*parts.store, parts.identity.size, &settings); !status.ok())
    return status;
  std::vector<std::unique_ptr<Backend>> backends;
  if (status = make_backends(*fabric, settings.backend, &backends); !status.ok()) return status;
  log_joined(parts, backends, settings, begun);
  const EngineConfig config = engine_config(settings, parts.fabric.epoch);
  context->reset(new Context(std::move(parts), std::move(fabric), std::move(backends), config));
  return Status::success();
}

namespace {

std::vector<Backend*> pointers(const std::vector<std::unique_ptr<Backend>>& backends) {
  std::vector<Backend*> result;
  for (const auto& backend : backends) result.push_back(backend.get());
  return result;
}

}  // namespace

Context::Context(ContextParts parts, std::unique_ptr<Fabric> fabric,
                 std::vector<std::unique_ptr<Backend>> backends, const EngineConfig& config)
    : identity_(parts.identity),
      leave_limit_(parts.leave_limit),
      keeps_(std::move(parts.keeps)),
      store_(std::move(parts.store)),
      fabric_(std::move(fabric)),
      backends_(std::move(backends)),
      engine_(config, *fabric_, pointers(backends_)),
      driver_(engine_, fabric_->doorbell(), patience_for(identity_.local_size)) {}

Context::~Context() { shutdown(); }

Status Context::enqueue(OperationPtr operation, std::uint64_t* handle) {
  if (Status status = engine_.enqueue(operation); !status.ok()) return status;
  *handle = handles_.add(std::move(operation));
  driver_.wake();
  return Status::success();
}

Status Context::run(OperationPtr operation) {
  if (Status status = engine_.enqueue(operation); !status.ok()) return status;
  return wait(*operation, TimePoint::max());
}

Status Context::wait(const Operation& operation, TimePoint deadline) {
  if (!driver_.wait(operation.is_done, deadline)) return {StatusCode::kInProgress, {}};
  return operation.outcome;
}

void Context::shutdown() {
  const std::lock_guard lock(shutdown_mutex_);
  if (is_shut_down_) return;
  is_shut_down_ = true;
  engine_.request_leave();
  driver_.wake();
  const TimePoint deadline = now() + leave_limit_;
  if (!driver_.wait_until_finished(deadline - kCloseTimeoutAfterFailure)) {
    engine_.request_abort();
    driver_.wake();
    driver_.wait_until_finished(TimePoint::max());
  }
  HV_LOG(kDebug, "runtime") << (engine_.has_failed() ? "left the job after a failure"
                                                     : "left the job");
  store_->report_goodbye();
  const auto left = std::max(std::chrono::duration_cast<milliseconds>(deadline - now()),
                             kCloseTimeoutAfterFailure);
  fabric_->close(engine_.has_failed() ? kCloseTimeoutAfterFailure : left);
}

}  // namespace hv::runtime
