// Joining and leaving a job.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/context.h"

#include <algorithm>
#include <numeric>
#include <system_error>
#include <utility>

#include "runtime/collective/patience.h"
#include "runtime/collective/registry.h"
#include "runtime/device/cuda/cuda_accelerator.h"
#include "runtime/transport/io_thread.h"
#include "runtime/transport/set_plane.h"
#include "runtime/transport/shm/slot_rings.h"
#include "runtime/transport/transport.h"
#include "src/base/bounded_seconds.h"
#include "src/base/clock.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/contract/backend_words.h"
#include "src/contract/runtime_knobs.h"
#include "src/wire/codec.h"

namespace hv::runtime {
namespace {

using std::chrono::milliseconds;

// After a failure nobody reads anybody's memory, and the survivors leave when they like.
constexpr milliseconds kCloseTimeoutAfterFailure{100};
// Where nobody is held lost for it (HVRUN_PEER_TIMEOUT=0).
constexpr milliseconds kLongestSilence{60000};
constexpr const char* kSettingsKey = "engine.settings";

// What must be alike on all ranks is what rank 0's environment says.
struct SharedSettings {
  std::uint64_t cache_capacity = 0;
  std::int64_t fusion_threshold_bytes = 0;
  std::int64_t bucket_bytes = 0;
  double stall_seconds = 0;
  double stall_shutdown_seconds = 0;
  double straggler_seconds = 0;
  bool is_deterministic = false;
  std::string backend;
  std::string algorithms;
  void fields(auto& a) {
    a(cache_capacity, fusion_threshold_bytes, bucket_bytes, stall_seconds, stall_shutdown_seconds,
      straggler_seconds, is_deterministic, backend, algorithms);
  }
};

SharedSettings read_settings(const Environment& environment) {
  const KnobReader knobs(runtime_knobs(), environment);
  knobs.check_all();
  SharedSettings settings;
  settings.cache_capacity = static_cast<std::uint64_t>(knobs.integer("HVRUN_CACHE_CAPACITY"));
  settings.fusion_threshold_bytes = knobs.integer("HVRUN_FUSION_THRESHOLD");
  settings.bucket_bytes = knobs.integer("HVRUN_BUCKET_BYTES");
  settings.stall_seconds = knobs.seconds("HVRUN_STALL_SECONDS");
  settings.stall_shutdown_seconds = knobs.seconds("HVRUN_STALL_SHUTDOWN_SECONDS");
  settings.straggler_seconds = knobs.seconds(kStragglerSeconds);
  settings.is_deterministic = knobs.flag("HVRUN_DETERMINISTIC");
  settings.backend = knobs.text("HVRUN_BACKEND");
  settings.algorithms = knobs.text("HVRUN_ALGORITHM");
  return settings;
}

// This rank's own environment says whether and where.
Status begin_timeline(const ContextParts& parts, Observation& observation) {
  const KnobReader knobs(runtime_knobs(), parts.environment);
  auto path = timeline_path(knobs.text("HVRUN_TIMELINE"), parts.identity.rank);
  // Of several contexts of a process, each writes its own.
  if (path && parts.number > 0) *path += "." + std::to_string(parts.number);
  return path ? observation.timeline.start(*path, parts.identity.rank) : Status::success();
}

// The ranks' connections. Of streams and peer_timeout rank 0's count, the rest is each host's own.
void read_network(const Environment& environment, FabricConfig* fabric) {
  const KnobReader knobs(runtime_knobs(), environment);
  fabric->ports = parse_port_range(knobs.text("HVRUN_PORT_RANGE")).value_or(PortRange{});
  // The program's own rendezvous may listen there later.
  fabric->ports.kept_for_others = static_cast<std::uint16_t>(
      parse_integer(environment.get("MASTER_PORT").value_or("")).value_or(0));
  fabric->streams = static_cast<int>(knobs.integer("HVRUN_STREAMS"));
  fabric->peer_timeout =
      std::chrono::ceil<milliseconds>(bounded_seconds(knobs.seconds("HVRUN_PEER_TIMEOUT")));
  fabric->interfaces =
      InterfaceFilter::parse(knobs.text("HVRUN_INTERFACES")).value_or(InterfaceFilter{});
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

// A stall is warned of before it ends the job: hvrun asks meanwhile where the ranks stand.
Duration warning_limit(const SharedSettings& settings) {
  const Duration limit = bounded_seconds(settings.stall_seconds);
  const Duration end = bounded_seconds(settings.stall_shutdown_seconds);
  return end == Duration::zero() ? limit : std::min(limit, end / 2);
}

EngineConfig engine_config(const SharedSettings& settings, int epoch, ObservationPtr observation) {
  EngineConfig config;
  config.negotiation.observation = std::move(observation);
  config.negotiation.epoch = static_cast<std::uint32_t>(epoch);
  config.negotiation.cache_capacity = static_cast<std::size_t>(settings.cache_capacity);
  config.negotiation.fusion_threshold_bytes = settings.fusion_threshold_bytes;
  config.negotiation.bucket_bytes = settings.bucket_bytes;
  config.negotiation.stall_limit = warning_limit(settings);
  config.negotiation.stall_end = bounded_seconds(settings.stall_shutdown_seconds);
  config.straggler_period = bounded_seconds(settings.straggler_seconds);
  config.deterministic = settings.is_deterministic;
  return config;
}

// kernels: each rank's own, as all give the same bits.
BackendSettings backend_settings(const SharedSettings& settings, const std::string& kernels,
                                 MpiPlacesPtr mpi, Doorbell& bell) {
  return {settings.backend,          settings.algorithms, kernels,
          settings.is_deterministic, std::move(mpi),      [&bell] { bell.ring(); }};
}

// What a set's session works with, over that plane.
Status make_parts(DataPlane* plane, const BackendSettings& settings,
                  const std::vector<int>& members, const Topology& job, SetParts* parts) {
  auto backends = std::make_shared<BackendSet>();
  if (Status status = make_backends(plane, settings, members, extent_of(job), backends.get());
      !status.ok())
    return status;
  parts->backends = backends->carriers;
  parts->pairs = backends->pairs;
  parts->keeps = std::move(backends);
  return Status::success();
}

SetMaker set_maker(Fabric& fabric, const BackendSettings& settings) {
  return [&fabric, settings](const ProcessSet& set, SetParts* parts) {
    parts->plane = std::make_shared<SetPlane>(*fabric.data_plane(), set.place);
    return make_parts(parts->plane.get(), settings, set.members(), fabric.topology(), parts);
  };
}

// MPI's end waits for all ranks. Whoever went without one that is but slow could not call it, and
// MPI's launcher holds that for a failure: a peer is waited for until it is held lost.
milliseconds leave_limit_of(const ContextParts& parts, bool has_mpi) {
  if (!has_mpi) return parts.leave_limit;
  const milliseconds silence = parts.fabric.peer_timeout;
  return parts.leave_limit + (silence.count() > 0 ? silence : kLongestSilence);
}

// What an operator would ask first: who is here, over what, with which settings.
void log_joined(const ContextParts& parts, const std::vector<Backend*>& backends,
                const SharedSettings& settings, TimePoint begun) {
  if (!log_enabled(LogLevel::kInfo)) return;
  const RankIdentity& who = parts.identity;
  std::vector<std::string> names;
  for (const Backend* backend : backends) names.emplace_back(backend->name());
  HV_LOG(kInfo, "runtime") << "joined the job: id=" << who.job_id << " epoch=" << parts.fabric.epoch
                           << " rank=" << who.rank << " size=" << who.size
                           << " local_size=" << who.local_size << " hosts=" << who.cross_size
                           << " backends=" << join(names, ",")
                           << " fusion_threshold=" << settings.fusion_threshold_bytes
                           << " bucket_bytes=" << settings.bucket_bytes
                           << " cache_capacity=" << settings.cache_capacity
                           << " algorithms=" << settings.algorithms
                           << " stall_seconds=" << settings.stall_seconds
                           << " stall_shutdown_seconds=" << settings.stall_shutdown_seconds
                           << " deterministic=" << settings.is_deterministic
                           << " took_ms=" << 1000 * seconds_since(begun);
}

}  // namespace

Status Context::join(ContextParts parts, std::shared_ptr<Context>* context) {
  const TimePoint begun = now();
  SharedSettings settings = read_settings(parts.environment);
  auto observation = std::make_shared<Observation>();
  if (Status status = begin_timeline(parts, *observation); !status.ok()) return status;
  read_network(parts.environment, &parts.fabric);
  parts.fabric.moved = observation->moved;
  parts.fabric.step_report = observation->step_report;
  parts.fabric.stall_report = observation->stall_report;
  if (Status status = parts.store->put(kSettingsKey, encode(settings)); !status.ok()) return status;
  Status status;
  auto fabric = connect_fabric(parts.identity, *parts.store, parts.fabric, &status);  // fences
  if (fabric == nullptr) return status;
  if (status = fetch_settings(*parts.store, parts.identity.size, &settings); !status.ok())
    return status;
  const KnobReader knobs(runtime_knobs(), parts.environment);
  MpiPlacesPtr mpi;
  if (names_mpi(settings.backend))
    status = meet_in_mpi(parts.environment, parts.identity, *parts.store,
                         parts.fabric.meeting_timeout, &mpi);
  if (!status.ok()) return status;
  const BackendSettings choice =
      backend_settings(settings, knobs.text("HVRUN_KERNELS"), std::move(mpi), fabric->doorbell());
  std::vector<int> everyone(static_cast<std::size_t>(parts.identity.size));
  std::iota(everyone.begin(), everyone.end(), 0);
  SetParts all;
  if (status = make_parts(fabric->data_plane(), choice, everyone, fabric->topology(), &all);
      !status.ok())
    return status;
  log_joined(parts, all.backends, settings, begun);
  if (parts.identity.rank == 0) {
    HV_LOG(kInfo, "backend") << "collectives are carried " << carriers_in_words(choice);
  }
  const EngineConfig config = engine_config(settings, parts.fabric.epoch, std::move(observation));
  try {
    context->reset(
        new Context(std::move(parts), std::move(fabric), std::move(all), config, choice));
  } catch (const std::system_error& error) {
    return io_trouble("join the job: start the engine", error);
  }
  (*context)->settle_mpi();
  return Status::success();
}

Context::Context(ContextParts parts, std::unique_ptr<Fabric> fabric, SetParts all,
                 const EngineConfig& config, const BackendSettings& backends)
    : mpi_(backends.mpi),
      identity_(parts.identity),
      leave_limit_(leave_limit_of(parts, mpi_ != nullptr)),
      keeps_(std::move(parts.keeps)),
      store_(std::move(parts.store)),
      fabric_(std::move(fabric)),
      observation_(config.negotiation.observation),
      engine_(config, *fabric_, std::move(all), set_maker(*fabric_, backends)),
      driver_(engine_, fabric_->doorbell(), patience_for(fabric_->topology())) {}

Context::~Context() { shutdown(); }

namespace {

// Of a tensor on a GPU: what its caller's stream has been given by now is to be done before it is
// read.
Status mark_readiness(Operation& operation) {
  if (operation.device == kHostDevice) return Status::success();
  Status status = cuda::CudaAccelerator::of_process(&operation.accelerator);
  if (status.ok())
    status = operation.accelerator->mark(operation.device, operation.stream, &operation.ready);
  if (!status.ok())
    status.message = "enqueue " + tensor_words(operation.name) + ": " + status.message;
  return status;
}

// The outcome. What is left to do on a GPU comes before what the caller's stream is given next,
// that of an operation which failed, too: it may still write.
Status settled(const Operation& operation) {
  if (operation.ended == nullptr || operation.is_followed) return operation.outcome;
  const Status status =
      operation.accelerator->follow(operation.device, operation.stream, *operation.ended);
  operation.is_followed = status.ok();
  return operation.outcome.ok() ? status : operation.outcome;
}

}  // namespace

// Whoever has not waited for a complete operation may give its memory to others now, on its stream.
// What that answers comes again with whatever the stream is given next.
void let_go(Operation& operation) {
  if (!operation.is_done.load(std::memory_order_acquire)) return;
  (void)settled(operation);
  give_back_result(operation);
}

Status Context::add(const OperationPtr& operation) {
  const Status status = mark_readiness(*operation);
  return status.ok() ? engine_.enqueue(operation) : status;
}

Status Context::enqueue(OperationPtr operation, std::uint64_t* handle) {
  if (Status status = add(operation); !status.ok()) return status;
  *handle = handles_.add(std::move(operation));
  driver_.wake();
  return Status::success();
}

bool Context::release(std::uint64_t handle) {
  const OperationPtr operation = handles_.take(handle);
  if (operation == nullptr) return false;
  let_go(*operation);
  if (operation->device != kHostDevice) driver_.wake();  // which gives its memory back in time
  return true;
}

Status Context::run(OperationPtr operation) {
  if (Status status = add(operation); !status.ok()) return status;
  return wait(*operation, TimePoint::max());
}

Status Context::wait(const Operation& operation, TimePoint deadline) {
  if (operation.is_done.load(std::memory_order_acquire)) return settled(operation);
  await(operation);
  const TimePoint begun = now();
  const bool is_done = driver_.wait(operation.is_done, deadline);
  Counters& counters = observation_->counters;
  ++counters.waits;
  counters.wait_nanoseconds.add(static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now() - begun).count()));
  return is_done ? settled(operation) : Status{StatusCode::kInProgress, {}};
}

Status Context::start_timeline(const std::string& pattern) {
  const std::lock_guard lock(shutdown_mutex_);
  if (is_shut_down_) return {StatusCode::kShutdown, "start a timeline: this context is shut down"};
  const auto path = timeline_path(pattern, identity_.rank);
  return path ? observation_->timeline.start(*path, identity_.rank) : Status::success();
}

void Context::await(const Operation& operation) {
  if (operation.is_done.load(std::memory_order_acquire)) return;
  if (engine_.await(operation) && !operation.is_done) driver_.wake();
}

Status Context::change_sets(const OperationPtr& change) {
  const std::lock_guard lock(change_mutex_);
  change->name = kChangeName;
  const Status status = run(change);
  settle_mpi();
  return status;
}

// Where MPI allows one thread at a time the caller may be the next to call it: what sets have made
// or freed is to be through.
void Context::settle_mpi() {
  if (mpi_ != nullptr && !mpi_->has_all_threads) mpi_->plugin->settle();
}

Status Context::add_process_set(std::vector<std::int32_t> ranks, std::uint32_t* set) {
  std::sort(ranks.begin(), ranks.end());
  // One more than there are is enough to be refused by every rank.
  ranks.resize(std::min(ranks.size(), static_cast<std::size_t>(identity_.size) + 1));
  const auto change = std::make_shared<Operation>();
  change->description.kind = CollectiveKind::kAddSet;
  change->description.ranks = std::move(ranks);
  Status status = change_sets(change);
  if (status.ok()) *set = change->new_set;
  return status;
}

Status Context::remove_process_set(std::uint32_t set) {
  if (set > INT32_MAX)
    return {StatusCode::kArgument, "there is no process set " + std::to_string(set)};
  const auto change = std::make_shared<Operation>();
  change->description.kind = CollectiveKind::kRemoveSet;
  change->description.root = static_cast<std::int32_t>(set);
  return change_sets(change);
}

// None after a failure: a peer that has not seen it yet may still write to what was freed.
std::shared_ptr<SharedHeap> Context::heap() const {
  DataPlane* const plane = fabric_->data_plane();
  if (plane == nullptr || engine_.has_failed()) return nullptr;
  return plane->host().memory().own_heap();
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
  // What cannot be written has been told by the thread that writes.
  (void)observation_->timeline.stop();
  observation_->step_report->send_last(*store_);
  store_->report(Leaving{});
  const auto left = std::max(std::chrono::duration_cast<milliseconds>(deadline - now()),
                             kCloseTimeoutAfterFailure);
  fabric_->close(engine_.has_failed() ? kCloseTimeoutAfterFailure : left);
}

}  // namespace hv::runtime
