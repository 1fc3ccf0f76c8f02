// SPDX-License-Identifier: Apache-2.0
#include "tests/ranks/engine/job.h"

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "src/base/text.h"

namespace hv::runtime {
namespace {

struct Watch {
  std::mutex mutex;  // guards all
  std::condition_variable changed;
  std::vector<std::string> positions;
  std::vector<std::string> failures;
  std::size_t running = 0;
};

ContextParts parts_of(const RankIdentity& who, InprocStoreHub& hub, const JobOptions& options) {
  ContextParts parts;
  parts.identity = who;
  parts.store = hub.store(who.rank);
  parts.environment = options.environment;
  const bool is_inproc = options.kind == RankKind::kThreadsOneMapping;
  parts.fabric.local = is_inproc ? LocalTransport::kInproc : LocalTransport::kShm;
  parts.fabric.addresses = {"127.0.0.1"};
  parts.fabric.epoch = options.epoch;
  return parts;
}

void run_bare(ContextParts parts, const std::function<void(Fabric&)>& body) {
  Status status;
  const auto fabric = connect_fabric(parts.identity, *parts.store, parts.fabric, &status);
  expect(fabric != nullptr, "connect: " + status.message);
  body(*fabric);
}

void run_whole(const RankIdentity& who, InprocStoreHub& hub, const JobOptions& options,
               const std::function<void(const std::string&)>& at,
               const std::function<void(Rank&)>& body) {
  std::shared_ptr<Context> context;
  const Status joined = Context::join(parts_of(who, hub, options), &context);
  expect(joined.ok(), "join: " + joined.message);
  const std::unique_ptr<GpuTensors> gpu = GpuTensors::wanted(who.rank);
  Rank rank{who.rank, who.size, *context, hub, at, gpu.get()};
  at("joined");
  body(rank);
  // Together, as far as that is still possible: whoever has less to do would end what the others
  // have in flight.
  at("waiting for the others' end");
  if (options.shuts_down) (void)rank.run(barrier_request());
  at("shutting down");
  if (options.shuts_down) context->shutdown();
}

void run_rank(const RankIdentity& who, InprocStoreHub& hub, const JobOptions& options, Watch& watch,
              const std::function<void(Rank&)>& body) {
  const auto at = [&watch, &who](const std::string& position) {
    const std::lock_guard lock(watch.mutex);
    watch.positions[static_cast<std::size_t>(who.rank)] = position;
  };
  std::string failure;
  try {
    at("joining");
    if (who.rank == options.bare_rank) {
      run_bare(parts_of(who, hub, options), options.bare_body);
    } else {
      run_whole(who, hub, options, at, body);
    }
  } catch (const std::exception& error) {
    failure = "rank " + std::to_string(who.rank) + ": " + error.what();
  }
  at("finished");
  const std::lock_guard lock(watch.mutex);
  if (!failure.empty()) watch.failures.push_back(failure);
  --watch.running;
  watch.changed.notify_all();
}

}  // namespace

Status Rank::enqueue(const hvrun_request& request, std::uint64_t* handle) const {
  OperationPtr operation;
  if (Status status = read_request(&request, size, &operation); !status.ok()) return status;
  if (gpu != nullptr) gpu->take_there(*operation);
  return context.enqueue(std::move(operation), handle);
}

Status Rank::wait(std::uint64_t handle) const {
  const OperationPtr operation = context.find(handle);
  if (!operation) return {StatusCode::kHandle, "unknown handle"};
  return wait(*operation);
}

Status Rank::wait(Operation& operation, TimePoint deadline) const {
  Status status = context.wait(operation, deadline);
  if (gpu != nullptr && operation.is_done) gpu->bring_back(operation);
  return status;
}

Status Rank::run(const hvrun_request& request, OperationPtr* operation) const {
  OperationPtr own;
  if (Status status = read_request(&request, size, &own); !status.ok()) return status;
  if (operation != nullptr) *operation = own;
  if (gpu != nullptr) gpu->take_there(*own);
  Status status = context.run(own);
  if (gpu != nullptr) gpu->bring_back(*own);
  return status;
}

void run_job(const JobOptions& options, const std::function<void(Rank&)>& body) {
  const auto identities = identities_of(options.shape);
  InprocStoreHub hub(size_of(options.shape));
  Watch watch;
  watch.positions.resize(identities.size());
  watch.running = identities.size();
  std::vector<std::thread> threads;
  for (const RankIdentity& who : identities) {
    threads.emplace_back([&] { run_rank(who, hub, options, watch, body); });
  }
  {
    std::unique_lock lock(watch.mutex);
    if (!watch.changed.wait_for(lock, options.deadline, [&] { return watch.running == 0; })) {
      for (std::size_t rank = 0; rank < watch.positions.size(); ++rank) {
        std::fprintf(stderr, "deadline: rank %zu is at: %s\n", rank, watch.positions[rank].c_str());
      }
      for (const std::string& failure : watch.failures)
        std::fprintf(stderr, "failed: %s\n", failure.c_str());
      std::abort();
    }
  }
  for (std::thread& thread : threads) thread.join();
  if (!watch.failures.empty()) throw std::runtime_error(join(watch.failures, "; "));
}

}  // namespace hv::runtime
