// The functions of hvrun.h through which a program looks at its runtime.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/api/context_registry.h"
#include "runtime/api/last_error.h"
#include "runtime/api/sized_struct.h"
#include "runtime/include/hvrun/hvrun.h"

namespace hv::runtime {
namespace {

hvrun_counters values_of(const Observation& observation) {
  const Counters& from = observation.counters;
  hvrun_counters to = HVRUN_COUNTERS_INIT;
  to.operations_enqueued = from.enqueued.value();
  to.operations_completed = from.completed.value();
  to.operations_failed = from.failed.value();
  to.input_bytes = from.input_bytes.value();
  to.result_bytes = from.result_bytes.value();
  to.steps = from.steps.value();
  to.decisions = from.decisions.value();
  to.cache_hits = from.cache_hits.value();
  to.cache_misses = from.cache_misses.value();
  to.buckets = from.buckets.value();
  to.fused_buckets = from.fused_buckets.value();
  to.fused_tensors = from.fused_tensors.value();
  to.stalls = from.stalls.value();
  to.waits = from.waits.value();
  to.wait_nanoseconds = from.wait_nanoseconds.value();
  to.straggler_nanoseconds = from.straggler_nanoseconds.value();
  to.worst_rank_nanoseconds = from.worst_rank_nanoseconds.value();
  to.worst_rank = from.worst_rank.load(std::memory_order_relaxed);
  to.timeline_dropped = observation.timeline.dropped();
  to.kept_buckets = from.kept_buckets.value();
  to.given_up_buckets = from.given_up_buckets.value();
  to.shared_memory_bytes = observation.moved->shared_memory.load(std::memory_order_relaxed);
  to.tcp_bytes = observation.moved->tcp.load(std::memory_order_relaxed);
  return to;
}

// As much of it as the caller's version knows; its struct_size stays.
Status read_counters(hvrun_context* context, hvrun_counters* counters) {
  if (counters == nullptr || counters->struct_size < sizeof counters->struct_size) {
    return {StatusCode::kArgument,
            "hvrun_counters_read: begin the counters with HVRUN_COUNTERS_INIT"};
  }
  std::shared_ptr<Context> found;
  if (Status status = ContextRegistry::instance().find(context, &found); !status.ok())
    return status;
  hvrun_counters values = values_of(found->observation());
  values.struct_size = counters->struct_size;
  std::memcpy(counters, &values, std::min(values.struct_size, sizeof values));
  return Status::success();
}

Status report_steps(hvrun_context* context, const hvrun_step_times* given) {
  const std::string doing = "hvrun_report_steps";
  if (given == nullptr) return {StatusCode::kArgument, doing + ": times is NULL"};
  hvrun_step_times from{};
  if (Status status =
          copy_sized({doing.c_str(), "HVRUN_STEP_TIMES_INIT"}, given, sizeof from, &from);
      !status.ok())
    return status;
  const wire::StepTimes times{from.steps, from.nanoseconds, from.data_nanoseconds,
                              from.exchange_nanoseconds, from.data_waits};
  if (!times.is_plausible()) {
    return {StatusCode::kArgument,
            doing + ": " + std::to_string(from.steps) + " steps of " +
                std::to_string(from.nanoseconds) + " ns with " +
                std::to_string(from.data_nanoseconds) + " ns in " +
                std::to_string(from.data_waits) + " waits for data and " +
                std::to_string(from.exchange_nanoseconds) +
                " ns of exchange cannot be; parts are no more than the whole, and times are of "
                "steps and waits that were counted"};
  }
  std::shared_ptr<Context> found;
  if (Status status = ContextRegistry::instance().find(context, &found); !status.ok())
    return status;
  const auto last = found->report_steps(times);
  if (!last) return Status::success();
  return {StatusCode::kArgument,
          doing + ": " + std::to_string(from.steps) + " steps of " +
              std::to_string(from.nanoseconds) + " ns follow " + std::to_string(last->steps) +
              " steps of " + std::to_string(last->nanoseconds) +
              " ns, and a part of them has shrunk; report the totals since the process began"};
}

Status start_timeline(hvrun_context* context, const char* path) {
  std::shared_ptr<Context> found;
  if (Status status = ContextRegistry::instance().find(context, &found); !status.ok())
    return status;
  if (path == nullptr || *path == '\0')
    return {StatusCode::kArgument, "hvrun_timeline_start: path is empty; name a file"};
  return found->start_timeline(path);
}

Status stop_timeline(hvrun_context* context) {
  std::shared_ptr<Context> found;
  if (Status status = ContextRegistry::instance().find(context, &found); !status.ok())
    return status;
  return found->stop_timeline();
}

}  // namespace
}  // namespace hv::runtime

namespace api = hv::runtime;

hvrun_status hvrun_counters_read(hvrun_context* context, hvrun_counters* counters) {
  return api::guarded([&] { return api::read_counters(context, counters); });
}

hvrun_status hvrun_report_steps(hvrun_context* context, const hvrun_step_times* times) {
  return api::guarded([&] { return api::report_steps(context, times); });
}

hvrun_status hvrun_timeline_start(hvrun_context* context, const char* path) {
  return api::guarded([&] { return api::start_timeline(context, path); });
}

hvrun_status hvrun_timeline_stop(hvrun_context* context) {
  return api::guarded([&] { return api::stop_timeline(context); });
}
