// A job of whole runtimes inside one test: every rank a context and a thread of its own.
// SPDX-License-Identifier: Apache-2.0
//
// The deadline prints where every rank stood and aborts: a hang is always told with names.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/api/context.h"
#include "runtime/api/request_reader.h"
#include "src/rendezvous/inproc_store.h"
#include "tests/ranks/engine/gpu_tensors.h"
#include "tests/ranks/engine/requests.h"
#include "tests/ranks/run_ranks.h"

namespace hv::runtime {

// Who is told of a lost rank has the error within two seconds on an idle machine; who is not, when
// the rank's silence has lasted 15 s. This tells the two apart on a busy machine, too.
constexpr std::chrono::seconds kBeforeSilence{8};

struct Rank {
  int rank;
  int size;
  Context& context;
  InprocStoreHub& hub;
  std::function<void(const std::string&)> at;
  GpuTensors* gpu = nullptr;  // where tensors are taken; nullptr: they stay on the host

  // As hvrun_enqueue; a refused request is the status.
  Status enqueue(const hvrun_request& request, std::uint64_t* handle) const;
  // As hvrun_wait without a timeout.
  Status wait(std::uint64_t handle) const;
  Status wait(Operation& operation, TimePoint deadline = TimePoint::max()) const;
  // Enqueue and wait, the operation kept for its result.
  Status run(const hvrun_request& request, OperationPtr* operation = nullptr) const;
};

struct JobOptions {
  JobShape shape{2};
  Environment environment;
  RankKind kind = RankKind::kThreadsOneMapping;
  std::chrono::seconds deadline{120};
  bool shuts_down = true;  // after a barrier; false: body does
  int epoch = 0;
  // Not negative: this rank is no runtime but connections alone, and does that instead of the body.
  int bare_rank = -1;
  std::function<void(Fabric&)> bare_body{};
};

inline JobOptions in_shape(JobShape shape) {
  JobOptions options;
  options.shape = std::move(shape);
  return options;
}

// Runs body on every rank. A failure of a body (it throws) fails the test from the main thread.
void run_job(const JobOptions& options, const std::function<void(Rank&)>& body);

}  // namespace hv::runtime
