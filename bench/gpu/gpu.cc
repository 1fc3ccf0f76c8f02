// What a GPU does for a bucket: packing and unpacking beside a plain copy there; and allreduces by
// libhvrun beside bare NCCL, of ranks that share the GPU.
// SPDX-License-Identifier: Apache-2.0
//
// One process on the first GPU. Every figure is the median of rounds in which all of them are
// measured by turns, a line of JSON each. Bandwidths count bytes that are read and bytes that are
// written. Where there is no GPU, or no NCCL, that is said, and the exit code is 77.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "bench/gpu/gpu.h"
#include "bench/gpu/gpu_ranks.h"
#include "bench/ranks/gradients.h"
#include "runtime/backend/nccl/nccl_library.h"
#include "src/base/clock.h"
#include "src/base/environment.h"

namespace {

using namespace bench;     // NOLINT: a program
using namespace hv;        // NOLINT
using namespace hv::cuda;  // NOLINT
using runtime::ElementType;
using runtime::MemoryPtr;

// Seconds of one call, of so many that the end is not what is measured.
double seconds_of(const Gpu& gpu, int calls, const std::function<void()>& call) {
  call();
  gpu.settle(gpu.device->work());
  const TimePoint start = now();
  for (int i = 0; i < calls; ++i) call();
  gpu.settle(gpu.device->work());
  return seconds_since(start) / calls;
}

// A model's gradients, each a tensor of its own, and their bucket.
struct Bucket {
  Bucket(const Gpu& gpu, const std::string& list, ElementType wire) {
    const std::size_t width = runtime::element_size(wire);
    std::size_t at = 0;
    for (const bench::Gradient& gradient : bench::read_gradients(list)) {
      tensors.push_back(gpu.memory(gradient.elements() * sizeof(float)));
      at = (at + 15) / 16 * 16;
      in.push_back({address_of(tensors.back()), at, gradient.elements()});
      at += gradient.elements() * width;
      bytes += gradient.elements() * (sizeof(float) + width);
    }
    memory = gpu.memory(at);
    for (Strip& strip : in) {
      strip.to += address_of(memory);
      out.push_back({strip.to, strip.from, strip.count});
    }
  }

  std::vector<MemoryPtr> tensors;
  MemoryPtr memory;
  std::vector<Strip> in, out;
  std::size_t bytes = 0;
};

void measure_packing(const Gpu& gpu, const std::string& list, int calls, int rounds,
                     Figures* figures) {
  const std::pair<const char*, ElementType> kinds[] = {{"float32", ElementType::kFloat32},
                                                       {"float16", ElementType::kFloat16},
                                                       {"bfloat16", ElementType::kBfloat16}};
  std::vector<Bucket> buckets;
  for (const auto& [name, wire] : kinds) buckets.emplace_back(gpu, list, wire);
  const std::size_t copied = buckets[0].bytes / 2;
  const MemoryPtr from = gpu.memory(copied), to = gpu.memory(copied);
  const Stream work = gpu.device->work();
  const auto note = [&](const std::string& what, std::size_t bytes, double seconds) {
    Measured& one = (*figures)[what];
    one.bytes = bytes;
    one.beside = what == "copy" ? "" : "copy";
    one.is_bandwidth = true;
    one.seconds.push_back(seconds);
  };
  for (int round = 0; round < rounds; ++round) {
    note("copy", 2 * copied, seconds_of(gpu, calls, [&] {
           require(gpu.device->copy(work, runtime::Accelerator::Way::kOnDevice, to.get(),
                                    from.get(), copied));
         }));
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      const Bucket& bucket = buckets[i];
      const ElementType wire = kinds[i].second;
      note(std::string("pack to ") + kinds[i].first, bucket.bytes, seconds_of(gpu, calls, [&] {
             require(gpu.kernels->move(work, bucket.in, ElementType::kFloat32, wire, {}));
           }));
      note(std::string("unpack from ") + kinds[i].first, bucket.bytes, seconds_of(gpu, calls, [&] {
             require(gpu.kernels->move(work, bucket.out, wire, ElementType::kFloat32, {}));
           }));
    }
  }
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    std::fprintf(stderr, "usage: bench_gpu GRADIENTS [ROUNDS [CALLS]]\n");
    return 2;
  }
  const int rounds = count > 2 ? std::atoi(words[2]) : 7,
            calls = count > 3 ? std::atoi(words[3]) : 50;
  for (const char* const knob : {"HVRUN_SHARE_GPU", "NCCL_MULTI_RANK_GPU_ENABLE"})
    set_in_process_if_unset(knob, "1");
  const Gpu gpu;
  std::shared_ptr<const nccl::Library> library;
  const Environment environment = Environment::of_process();
  const Status found = nccl::Library::open(
      nccl::places(environment.get_or("HVRUN_NCCL", ""),
                   nccl::package_folders(words[0], {environment.get_or("VIRTUAL_ENV", "")})),
      &library);
  if (!found.ok()) skip(found.message);
  const int ranks = library->version() >= nccl::kSharesGpusFrom ? 2 : 1;
  std::printf("{\"gpu\": \"%s\", \"cuda\": %d, \"nccl\": %d, \"rounds\": %d, \"ranks\": %d}\n",
              gpu.name.c_str(), gpu.driver->version(), library->version(), rounds, ranks);
  std::fflush(stdout);
  Figures figures;
  measure_packing(gpu, words[1], calls, rounds, &figures);
  measure_ranks(gpu, library, {ranks, words[1], calls, rounds}, &figures);
  print(figures);
  return 0;
}
