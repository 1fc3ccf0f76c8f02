// Times the collective layer alone: blocking allreduce of float32 between ranks of this host, over
// shared memory.
// SPDX-License-Identifier: Apache-2.0
//
// One run is one round: the ranks are forked, connect, and time every size; rank 0 prints one line
// per size
// (--json: one object per line). With --copy it times instead all ranks copying that many bytes at
// the same time, the yardstick for large tensors. Figures are medians over the repetitions of this
// round.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bench/allreduce_options.h"
#include "runtime/backend/native/native_backend.h"
#include "runtime/collective/blocking.h"
#include "runtime/transport/selection.h"
#include "src/rendezvous/forked_store.h"

namespace {

using namespace hv;           // NOLINT: a program of one file
using namespace hv::runtime;  // NOLINT

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
  void barrier() {
    CollectiveRequest request;
    request.kind = CollectiveKind::kBarrier;
    run(std::move(request));
  }
  void allreduce(const float* input, float* output, std::size_t count) {
    CollectiveRequest request;
    request.kind = CollectiveKind::kAllreduce;
    request.type = ElementType::kFloat32;
    request.segments = {{reinterpret_cast<const std::byte*>(input),
                         reinterpret_cast<std::byte*>(output), static_cast<std::int64_t>(count)}};
    run(std::move(request));
  }
};

bool is_right(const bench::Buffer& result, std::size_t count, int ranks) {
  for (std::size_t i = 0; i < count; i += 997)
    if (result[i] != static_cast<float>(ranks * (ranks + 1) / 2)) return false;
  return true;
}

// Seconds of each repetition, as this rank sees them.
std::vector<double> time_size(Rank& rank, const bench::Options& options, std::size_t bytes) {
  const std::size_t count = bytes / sizeof(float);
  const auto mine = static_cast<float>(rank.fabric.topology().rank + 1);
  bench::Buffer input(count, mine), separate(count, 0);
  bench::Buffer& output = options.in_place ? input : separate;
  const int repetitions = options.repetitions(bytes);
  std::vector<double> seconds;
  for (int i = -repetitions / 4 - 1; i < repetitions; ++i) {
    if (options.in_place) input.fill(mine);
    rank.barrier();
    const TimePoint start = now();
    for (int k = 0; k < options.batch(bytes); ++k) {
      if (options.copy)
        std::memcpy(separate.data(), input.data(), bytes);
      else
        rank.allreduce(input.data(), output.data(), count);
    }
    const double took = seconds_since(start) / options.batch(bytes);
    if (i >= 0) seconds.push_back(took);
  }
  const bool is_checkable = !options.copy && (!options.in_place || options.batch(bytes) == 1);
  if (is_checkable && !is_right(output, count, rank.fabric.topology().size)) {
    std::fprintf(stderr, "wrong result at %zu bytes\n", bytes);
    ::_exit(1);
  }
  return seconds;
}

int run_rank(const RankIdentity& who, Store& store, const bench::Options& options) {
  if (options.pin) bench::pin_to_core(who.rank);
  FabricConfig config;
  config.slot_bytes = options.slot_bytes;
  Status status;
  const auto fabric = connect_fabric(who, store, config, &status);
  if (!fabric) {
    std::fprintf(stderr, "rank %d: %s\n", who.rank, status.message.c_str());
    return 1;
  }
  NativeBackend backend(*fabric->data_plane());
  Rank rank{*fabric, backend};
  for (const std::size_t bytes : options.sizes) {
    const auto seconds = time_size(rank, options, bytes);
    if (who.rank == 0) bench::print(options, options.copy ? "copy" : "hvrun", bytes, seconds);
  }
  fabric->close(std::chrono::seconds(5));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse(argc, argv);
  ForkedStoreHub hub(options.ranks);
  for (int r = 0; r < options.ranks; ++r) {
    if (::fork() != 0) continue;
    RankIdentity who{
        r, options.ranks, r, options.ranks, 0, 1, "bench-" + std::to_string(::getppid())};
    const auto store = hub.store(r);
    const int code = run_rank(who, *store, options);
    std::fflush(stdout);
    ::_exit(code);
  }
  int worst = 0, result = 0;
  while (::wait(&result) > 0) worst = std::max(worst, WIFEXITED(result) ? WEXITSTATUS(result) : 1);
  return worst;
}
