// Times the collective layer alone: blocking calls on float32 that is known to all, no negotiation.
// SPDX-License-Identifier: Apache-2.0
//
// Started by hvrun, its ranks are the job's; by itself it forks --ranks of them on this host. One
// run is one round: rank 0 prints one line per operation and size (--json: one object per line).
// With --copy it times instead all ranks copying that many bytes at the same time, the yardstick
// for large tensors.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bench/ranks/blocking.h"
#include "bench/ranks/forked_store.h"
#include "bench/ranks/timing.h"
#include "runtime/api/birth.h"
#include "runtime/backend/native/native_backend.h"
#include "runtime/transport/selection.h"

namespace {

using namespace hv;           // NOLINT: a program of one file
using namespace hv::runtime;  // NOLINT

const std::byte* bytes_of(const float* data) { return reinterpret_cast<const std::byte*>(data); }
std::byte* bytes_of(float* data) { return reinterpret_cast<std::byte*>(data); }

CollectiveKind kind_of(const std::string& name) {
  if (name == "allreduce") return CollectiveKind::kAllreduce;
  if (name == "allgather") return CollectiveKind::kAllgather;
  if (name == "broadcast") return CollectiveKind::kBroadcast;
  return name == "alltoall" ? CollectiveKind::kAlltoall : CollectiveKind::kReducescatter;
}

CollectiveRequest request_of(const bench::Operation& operation, const float* input, float* output,
                             int root) {
  CollectiveRequest request;
  request.kind = kind_of(operation.name);
  request.type = ElementType::kFloat32;
  request.root = root;
  const auto part = static_cast<std::int64_t>(operation.part);
  const auto ranks = static_cast<std::size_t>(operation.ranks);
  const bool is_alltoall = request.kind == CollectiveKind::kAlltoall;
  request.segments = {{bytes_of(input), is_alltoall ? nullptr : bytes_of(output),
                       static_cast<std::int64_t>(operation.input_count())}};
  if (request.kind == CollectiveKind::kAllgather) request.counts_by_rank.assign(ranks, part);
  if (request.kind == CollectiveKind::kReducescatter) request.row_counts = {part};
  if (is_alltoall) {
    request.row_counts = {part};
    request.splits.assign(ranks, 1);
    request.counts_by_rank.assign(ranks, operation.ranks);
    request.make_room = [output](const std::vector<std::int64_t>&) { return bytes_of(output); };
  }
  return request;
}

struct Rank {
  Fabric& fabric;
  NativeBackend& backend;

  void run(CollectiveRequest request) {
    const auto collective = backend.start(std::move(request));
    const Status status = run_blocking(*collective, fabric);
    if (status.ok()) return;
    std::fprintf(stderr, "rank %d: %s\n", fabric.topology().rank, status.message.c_str());
    ::_exit(1);
  }
  void take_greatest(double* values, std::size_t count) {
    CollectiveRequest request;
    request.kind = CollectiveKind::kAllreduce;
    request.type = ElementType::kFloat64;
    request.reduction = Reduction::kMax;
    auto* const bytes = reinterpret_cast<std::byte*>(values);
    request.segments = {{bytes, bytes, static_cast<std::int64_t>(count)}};
    run(std::move(request));
  }
};

bench::Calls calls_of(Rank& rank, const bench::Options& options) {
  bench::Calls calls;
  calls.barrier = [&rank] { rank.run({}); };
  calls.run = [&rank, &options](const bench::Operation& operation, const float* input,
                                float* output, int root) {
    if (options.copy)
      std::memcpy(output, input, operation.whole * sizeof(float));
    else
      rank.run(request_of(operation, input, output, root));
  };
  calls.take_greatest = [&rank](double* values, std::size_t count) {
    rank.take_greatest(values, count);
  };
  calls.exit = [](int code) { ::_exit(code); };
  return calls;
}

int run_rank(const RankIdentity& who, Store& store, FabricConfig config,
             const bench::Options& options) {
  if (options.pin) bench::pin_to_core(who.local_rank);
  config.slot_bytes = options.slot_bytes;
  Status status;
  const auto fabric = connect_fabric(who, store, config, &status);
  if (!fabric) {
    std::fprintf(stderr, "rank %d: %s\n", who.rank, status.message.c_str());
    return 1;
  }
  NativeBackend backend(*fabric->data_plane(), {.wishes = parse_algorithms(options.algorithms)});
  Rank rank{*fabric, backend};
  bench::time_all(calls_of(rank, options), options, "hvrun", who.size, who.rank);
  store.report(Leaving{});
  fabric->close(std::chrono::seconds(5));
  return 0;
}

int fork_ranks(const bench::Options& options) {
  ForkedStoreHub hub(options.ranks);
  for (int r = 0; r < options.ranks; ++r) {
    if (::fork() != 0) continue;
    RankIdentity who{
        r, options.ranks, r, options.ranks, 0, 1, "bench-" + std::to_string(::getppid())};
    const auto store = hub.store(r);
    const int code = run_rank(who, *store, {}, options);
    std::fflush(stdout);
    ::_exit(code);
  }
  int worst = 0, result = 0;
  while (::wait(&result) > 0) worst = std::max(worst, WIFEXITED(result) ? WEXITSTATUS(result) : 1);
  return worst;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse(argc, argv);
  for (const std::string& name : options.operations)
    if (name == "exchange") bench::usage("bench_collective (exchange is bench_engine's)");
  ContextParts parts;
  if (const Status status = parts_of_process(&parts); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.message.c_str());
    return 1;
  }
  if (parts.identity.size == 1) return fork_ranks(options);
  return run_rank(parts.identity, *parts.store, parts.fabric, options);
}
