// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/gpu_ranks.h"

#include <hvrun/hvrun.h>

#include <barrier>
#include <functional>
#include <iterator>
#include <thread>
#include <utility>

#include "bench/ranks/gradients.h"
#include "runtime/api/context.h"
#include "runtime/api/request_reader.h"
#include "src/base/clock.h"
#include "src/base/environment.h"
#include "src/rendezvous/inproc_store.h"

namespace bench {
namespace {

using hv::cuda::Stream;
using hv::runtime::MemoryPtr;

constexpr std::size_t kBucketBytes = std::size_t{25} << 20;  // HVRUN_BUCKET_BYTES
constexpr std::size_t kSizes[] = {1, 4, 16, 64, 256};        // MiB

struct Shared {
  const Gpu& gpu;
  std::shared_ptr<const hv::nccl::Library> nccl;
  RanksWanted wanted;
  hv::InprocStoreHub hub;
  std::barrier<> together;
  hv::nccl::UniqueId id, polled_id;
};

class Rank {
 public:
  Rank(Shared& shared, int rank) : shared_(shared), rank_(rank) {
    shared_.gpu.enter();
    require(shared_.gpu.device->open_stream(&stream_));
    hv::runtime::ContextParts parts;
    parts.identity.rank = parts.identity.local_rank = rank;
    parts.identity.size = parts.identity.local_size = shared_.wanted.ranks;
    parts.store = shared_.hub.store(rank);
    parts.fabric.local = hv::runtime::LocalTransport::kInproc;
    parts.environment = hv::Environment::of_process();
    require(hv::runtime::Context::join(std::move(parts), &context_));
    comm_ = communicator(shared_.id, 1);
    polled_ = communicator(shared_.polled_id, 0);
  }
  ~Rank() {
    shared_.together.arrive_and_wait();
    shared_.nccl->call().destroy(comm_);
    await(polled_, shared_.nccl->call().finalize(polled_));
    shared_.nccl->call().destroy(polled_);
    context_->shutdown();
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  Stream stream() const { return stream_.get(); }
  const Gpu& gpu() const { return shared_.gpu; }
  const RanksWanted& wanted() const { return shared_.wanted; }

  void reduce_bare(std::byte* memory, std::size_t count) const {
    check(shared_.nccl->call().allreduce(memory, memory, count, hv::nccl::kFloat32, hv::nccl::kSum,
                                         comm_, stream()));
  }
  // As libhvrun has it: NCCL's own threads launch, and nothing may follow before they have.
  void reduce_polled(std::byte* memory, std::size_t count) const {
    await(polled_, shared_.nccl->call().allreduce(memory, memory, count, hv::nccl::kFloat32,
                                                  hv::nccl::kSum, polled_, stream()));
  }
  std::uint64_t enqueue(const char* name, std::byte* memory, std::int64_t count) const {
    hvrun_request request = HVRUN_REQUEST_INIT;
    request.operation = HVRUN_ALLREDUCE;
    request.type = HVRUN_FLOAT32;
    request.reduction = HVRUN_SUM;
    request.name = name;
    request.ndim = 1;
    request.shape = &count;
    request.input = request.output = memory;
    request.device = 1;
    request.stream = stream();
    hv::runtime::OperationPtr operation;
    std::uint64_t handle = 0;
    require(hv::runtime::read_request(&request, shared_.wanted.ranks, &operation));
    require(context_->enqueue(std::move(operation), &handle));
    return handle;
  }
  void finish(std::uint64_t handle) const {
    require(context_->wait(*context_->find(handle), hv::TimePoint::max()));
    context_->release(handle);
  }
  // Seconds of one call, of all ranks' at once.
  double seconds_of(int calls, const std::function<void()>& call) const {
    call();
    gpu().settle(stream());
    shared_.together.arrive_and_wait();
    const hv::TimePoint start = hv::now();
    for (int i = 0; i < calls; ++i) call();
    gpu().settle(stream());
    return hv::seconds_since(start) / calls;
  }

 private:
  void check(int result) const { require(shared_.nccl->check(result, "measure NCCL")); }
  void await(hv::nccl::Comm comm, int result) const {
    while (result == hv::nccl::kInProgress) {
      std::this_thread::yield();
      check(shared_.nccl->call().async_error(comm, &result));
    }
    check(result);
  }
  hv::nccl::Comm communicator(const hv::nccl::UniqueId& id, int blocking) {
    hv::nccl::Comm made = nullptr;
    hv::nccl::Config config;
    config.blocking = blocking;
    const int begun =
        shared_.nccl->call().init_rank(&made, shared_.wanted.ranks, id, rank_, &config);
    await(made, begun);
    return made;
  }

  Shared& shared_;
  const int rank_;
  hv::cuda::Device::StreamPtr stream_;
  std::shared_ptr<hv::runtime::Context> context_;
  hv::nccl::Comm comm_ = nullptr, polled_ = nullptr;
};

void note(Figures& figures, const std::string& what, const std::string& beside, std::size_t bytes,
          double seconds) {
  Measured& one = figures[what];
  one.bytes = bytes;
  one.beside = beside;
  one.seconds.push_back(seconds);
}

void measure_single(const Rank& rank, std::byte* memory, Figures& figures) {
  for (const std::size_t size : kSizes) {
    const std::size_t bytes = size << 20, count = bytes / sizeof(float);
    const std::string name = std::to_string(size) + "m";
    for (int round = 0; round < rank.wanted().rounds; ++round) {
      const auto bare = [&] { rank.reduce_bare(memory, count); };
      note(figures, "nccl-" + name, "", bytes, rank.seconds_of(rank.wanted().calls, bare));
      const auto polled = [&] { rank.reduce_polled(memory, count); };
      note(figures, "polled-" + name, "nccl-" + name, bytes,
           rank.seconds_of(rank.wanted().calls, polled));
      double on_host = 0;
      const auto ours = [&] {
        const hv::TimePoint start = hv::now();
        const auto handle = rank.enqueue(name.c_str(), memory, static_cast<std::int64_t>(count));
        on_host += hv::seconds_since(start);
        rank.finish(handle);
      };
      note(figures, "direct-" + name, "nccl-" + name, bytes,
           rank.seconds_of(rank.wanted().calls, ours));
      note(figures, "enqueue-" + name, "", 0, on_host / (rank.wanted().calls + 1));
    }
  }
}

struct Model {
  Model(const Gpu& gpu, const std::string& list) : gradients(read_gradients(list)) {
    for (const Gradient& one : gradients) {
      tensors.push_back(gpu.memory(one.elements() * sizeof(float)));
      count += one.elements();
    }
    bucket = gpu.memory(count * sizeof(float));
    std::size_t at = 0;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const std::size_t elements = gradients[i].elements();
      const hv::cuda::Address there = address_of(bucket) + at * sizeof(float);
      if (at * sizeof(float) < kBucketBytes)
        first.push_back({address_of(tensors[i]), there, elements});
      if ((count - at) * sizeof(float) < kBucketBytes)
        last.push_back({there, address_of(tensors[i]), elements});
      at += elements;
    }
  }

  std::vector<Gradient> gradients;
  std::vector<MemoryPtr> tensors;
  MemoryPtr bucket;
  std::vector<hv::cuda::Strip> first, last;
  std::size_t count = 0;
};

void measure_model(const Rank& rank, const Model& model, Figures& figures) {
  const auto move = [&](const std::vector<hv::cuda::Strip>& strips) {
    const auto type = hv::runtime::ElementType::kFloat32;
    require(rank.gpu().kernels->move(rank.stream(), strips, type, type, {}));
  };
  const auto bare = [&] {
    move(model.first);
    rank.reduce_bare(model.bucket.get(), model.count);
    move(model.last);
  };
  std::vector<std::uint64_t> handles;
  double enqueueing = 0;
  const auto ours = [&] {
    const hv::TimePoint start = hv::now();
    for (std::size_t i = model.gradients.size(); i-- > 0;)
      handles.push_back(rank.enqueue(model.gradients[i].name.c_str(), model.tensors[i].get(),
                                     static_cast<std::int64_t>(model.gradients[i].elements())));
    enqueueing += hv::seconds_since(start);
    for (const std::uint64_t handle : handles) rank.finish(handle);
    handles.clear();
  };
  for (int round = 0; round < rank.wanted().rounds; ++round) {
    const std::size_t bytes = model.count * sizeof(float);
    note(figures, "bucket", "", bytes, rank.seconds_of(rank.wanted().calls, bare));
    enqueueing = 0;
    note(figures, "fused", "bucket", bytes, rank.seconds_of(rank.wanted().calls, ours));
    note(figures, "fused, enqueues", "", 0, enqueueing / (rank.wanted().calls + 1));
  }
}

}  // namespace

void measure_ranks(const Gpu& gpu, const std::shared_ptr<const hv::nccl::Library>& library,
                   const RanksWanted& wanted, Figures* figures) {
  Shared shared{
      gpu, library, wanted, hv::InprocStoreHub(wanted.ranks), std::barrier<>(wanted.ranks), {}, {}};
  for (hv::nccl::UniqueId* const id : {&shared.id, &shared.polled_id})
    require(library->check(library->call().make_unique_id(id), "make an id"));
  std::vector<std::thread> threads;
  for (int number = 0; number < wanted.ranks; ++number) {
    threads.emplace_back([&shared, number, figures] {
      Figures others;
      Figures& mine = number == 0 ? *figures : others;
      // All memory is there before any of them works, and goes when all have: the driver's way to
      // give some back waits for what the others run.
      const Rank rank(shared, number);
      const MemoryPtr memory = shared.gpu.memory(kSizes[std::size(kSizes) - 1] << 20);
      const Model model(shared.gpu, shared.wanted.gradients);
      shared.together.arrive_and_wait();
      measure_single(rank, memory.get(), mine);
      measure_model(rank, model, mine);
      shared.together.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace bench
