// What a GPU does for a bucket: packing and unpacking beside a plain copy there, and one rank's
// allreduce by libhvrun beside a bare ncclAllReduce of the same bytes.
// SPDX-License-Identifier: Apache-2.0
//
// One process on the first GPU; other ranks would measure the links between GPUs. Every figure is
// the median of rounds in which all of them are measured by turns, a line of JSON each. Bandwidths
// count bytes that are read and bytes that are written. Where there is no GPU, or no NCCL, that is
// said, and the exit code is 77.
#include <hvrun/hvrun.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/gradients.h"
#include "runtime/backend/nccl/nccl_library.h"
#include "runtime/device/cuda/device.h"
#include "runtime/device/cuda/kernels.h"
#include "src/base/clock.h"
#include "src/base/environment.h"

namespace {

using namespace hv;        // NOLINT: a program of one file
using namespace hv::cuda;  // NOLINT
using runtime::ElementType;
using runtime::MemoryPtr;

[[noreturn]] void skip(const std::string& reason) {
  std::printf("skipped: %s\n", reason.c_str());
  std::exit(77);
}

void require(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "bench_gpu: %s\n", status.message.c_str());
  std::exit(1);
}

void require(hvrun_status status, const char* doing) {
  if (status == HVRUN_OK) return;
  std::fprintf(stderr, "bench_gpu: %s: %s\n", doing, hvrun_last_error());
  std::exit(1);
}

Address address_of(const MemoryPtr& memory) { return reinterpret_cast<Address>(memory.get()); }

// The first GPU, with its context current here.
struct Gpu {
  Gpu() {
    if (const Status found = Driver::open("libcuda.so.1", &driver); !found.ok())
      skip(found.message);
    Context context = nullptr;
    require(driver->check(driver->call().retain_context(&context, 0), "make a context"));
    require(driver->check(driver->call().push_context(context), "take it"));
    require(Device::open(driver, 0, &device));
    require(Kernels::load(driver, &kernels));
    char text[100] = "";
    driver->call().device_name(text, sizeof text, 0);
    name = text;
  }
  MemoryPtr memory(std::size_t bytes) const {
    MemoryPtr made;
    require(device->allocate(bytes, &made));
    require(device->clear(device->work(), made.get(), bytes));
    return made;
  }
  void settle() const {
    require(driver->check(driver->call().stream_synchronize(device->work()), "wait"));
  }

  std::shared_ptr<const Driver> driver;
  std::shared_ptr<Device> device;
  std::shared_ptr<const Kernels> kernels;
  std::string name;
};

// Seconds of one call, of so many that the end is not what is measured.
double seconds_of(const Gpu& gpu, int calls, const std::function<void()>& call) {
  call();
  gpu.settle();
  const TimePoint start = now();
  for (int i = 0; i < calls; ++i) call();
  gpu.settle();
  return seconds_since(start) / calls;
}

struct Measured {
  std::size_t bytes = 0;  // read and written, or reduced
  std::string beside;     // what it is compared with
  std::vector<double> seconds;
};
using Figures = std::map<std::string, Measured>;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void print(const Figures& figures) {
  for (const auto& [what, one] : figures) {
    const double seconds = median(one.seconds);
    std::printf("{\"what\": \"%s\", \"median_us\": %.3f, \"gb_per_s\": %.2f", what.c_str(),
                seconds * 1e6, static_cast<double>(one.bytes) / seconds / 1e9);
    const auto beside = figures.find(one.beside);
    if (beside != figures.end()) {
      const double other = median(beside->second.seconds);
      const bool is_bandwidth = beside->second.bytes != one.bytes || one.beside == "copy";
      const double ratio = is_bandwidth ? (static_cast<double>(one.bytes) / seconds) /
                                              (static_cast<double>(beside->second.bytes) / other)
                                        : seconds / other;
      std::printf(", \"%s_%s\": %.4f", is_bandwidth ? "bandwidth_of" : "time_of",
                  one.beside.c_str(), ratio);
    }
    std::printf("}\n");
  }
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

// A communicator of this rank alone.
struct Alone {
  Alone(const Gpu& gpu, std::shared_ptr<const nccl::Library> library)
      : nccl(std::move(library)), device(gpu.device) {
    nccl::UniqueId id;
    require(nccl->check(nccl->call().make_unique_id(&id), "make an id"));
    nccl::Config config;
    config.blocking = 1;
    require(nccl->check(nccl->call().init_rank(&comm, 1, id, 0, &config), "make a communicator"));
  }
  ~Alone() { nccl->call().destroy(comm); }

  void allreduce(std::byte* memory, std::size_t bytes) const {
    require(nccl->check(nccl->call().allreduce(memory, memory, bytes / sizeof(float),
                                               nccl::kFloat32, nccl::kSum, comm, device->work()),
                        "allreduce"));
  }

  std::shared_ptr<const nccl::Library> nccl;
  std::shared_ptr<Device> device;
  nccl::Comm comm = nullptr;
};

struct Enqueued {
  hvrun_handle handle = 0;
  double seconds = 0;  // on the host
};

Enqueued enqueue(const Gpu& gpu, std::byte* memory, std::int64_t count) {
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = HVRUN_ALLREDUCE;
  request.type = HVRUN_FLOAT32;
  request.reduction = HVRUN_SUM;
  request.name = "w";
  request.ndim = 1;
  request.shape = &count;
  request.input = request.output = memory;
  request.device = 1;
  request.stream = gpu.device->work();
  Enqueued one;
  const TimePoint start = now();
  require(hvrun_enqueue(nullptr, &request, &one.handle), "enqueue");
  one.seconds = seconds_since(start);
  return one;
}

void measure_allreduce(const Gpu& gpu, const Alone& alone, int calls, int rounds,
                       Figures* figures) {
  for (const std::size_t bytes :
       {std::size_t{1} << 20, std::size_t{16} << 20, std::size_t{64} << 20}) {
    const MemoryPtr memory = gpu.memory(bytes);
    const std::string size = std::to_string(bytes >> 20) + "m";
    const auto note = [&](const std::string& what, const std::string& beside, double seconds) {
      Measured& one = (*figures)[what + "-" + size];
      one.bytes = bytes;
      one.beside = beside.empty() ? "" : beside + "-" + size;
      one.seconds.push_back(seconds);
    };
    for (int round = 0; round < rounds; ++round) {
      note("nccl", "", seconds_of(gpu, calls, [&] { alone.allreduce(memory.get(), bytes); }));
      double on_host = 0;
      note("hvrun", "nccl", seconds_of(gpu, calls, [&] {
             const Enqueued one =
                 enqueue(gpu, memory.get(), static_cast<std::int64_t>(bytes / sizeof(float)));
             on_host += one.seconds;
             require(hvrun_wait(nullptr, one.handle, -1, nullptr), "wait");
             require(hvrun_release(nullptr, one.handle), "release");
           }));
      note("hvrun-enqueue", "", on_host / (calls + 1));
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
  const Gpu gpu;
  std::shared_ptr<const nccl::Library> library;
  const Environment environment = Environment::of_process();
  const Status found = nccl::Library::open(
      nccl::places(environment.get_or("HVRUN_NCCL", ""),
                   nccl::package_folders(words[0], environment.get_or("VIRTUAL_ENV", ""))),
      &library);
  if (!found.ok()) skip(found.message);
  std::printf("{\"gpu\": \"%s\", \"cuda\": %d, \"nccl\": %d, \"rounds\": %d}\n", gpu.name.c_str(),
              gpu.driver->version(), library->version(), rounds);
  Figures figures;
  measure_packing(gpu, words[1], calls, rounds, &figures);
  require(hvrun_init(nullptr, nullptr), "init");
  {
    const Alone alone(gpu, library);
    measure_allreduce(gpu, alone, calls, rounds, &figures);
  }
  require(hvrun_shutdown(nullptr), "shut down");
  print(figures);
  return 0;
}
