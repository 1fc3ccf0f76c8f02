// SPDX-License-Identifier: Apache-2.0
#include "tests/ranks/engine/gpu.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "runtime/backend/gpu/plugin_library.h"
#include "src/base/symbol.h"
#include "tests/fakes/cuda/fake_cuda.h"
#include "tests/fakes/nccl/fake_nccl.h"
#include "tests/ranks/engine/job.h"
#include "tests/unit/paths.h"

namespace hv::runtime {
namespace {

const std::string kNcclStandIn = tests::test_library("nccl/libnccl.so.2");
const std::string kStandIn = tests::test_library("cuda/libcuda.so.1");

constexpr int kStandInDevices = 8;
constexpr int kNcclForSharing = 23000;

bool is_way(const char* name) {
  const char* const way = std::getenv("HVRUN_TEST_MEMORY");
  return way != nullptr && std::strcmp(way, name) == 0;
}

const bool kIsReal = is_way("gpu");
const std::string kCuda = kIsReal ? "libcuda.so.1" : kStandIn;

void skip(const std::string& reason) {
  std::printf("skipped: %s\n", reason.c_str());
  std::fflush(stdout);
  ::_exit(77);
}

void skip_without_gpu() {
  std::shared_ptr<const cuda::Driver> driver;
  GpuPlugin* plugin = nullptr;
  std::int32_t version = 0;
  Status status = cuda::Driver::open(kCuda, &driver);
  if (status.ok() && driver->devices() == 0) skip("no GPU");
  if (status.ok()) status = find_gpu_plugin(&plugin);
  if (status.ok()) status = plugin->version(&version);
  if (!status.ok()) skip(status.message);
  if (version < kNcclForSharing)
    skip("ranks share a GPU from NCCL 2.30 on, and this is " + std::to_string(version));
}

// Its reason and exit code are this process's, which has asked CUDA for nothing and may fork ranks.
void ask_a_child() {
  const pid_t child = ::fork();
  if (child == 0) {
    skip_without_gpu();
    ::_exit(0);
  }
  int end = 0;
  if (child < 0 || ::waitpid(child, &end, 0) != child || !WIFEXITED(end)) ::abort();
  if (WEXITSTATUS(end) != 0) ::_exit(WEXITSTATUS(end));
}

// Before main(): no thread may ask for a variable while another sets one.
bool set_environment() {
  if (kIsReal) {
    ::setenv("HVRUN_SHARE_GPU", "1", 1);
    ::setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 0);
    ::setenv("NCCL_MAX_CTAS", "2", 0);
    // Ranks have one context here. A kernel's first launch would load it, which waits for what runs
    // there: a rank's kernel that waits for another rank's, which waits at such a launch. And with
    // fewer connections than streams one rank's work would stand behind another's.
    ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    ask_a_child();
    return true;
  }
  ::setenv("HVRUN_FAKE_CUDA_DELAY_US", "300", 0);
  ::setenv("HVRUN_FAKE_CUDA_DEVICES", std::to_string(kStandInDevices).c_str(), 0);
  ::setenv("HVRUN_NCCL", is_way("nccl") ? kNcclStandIn.c_str() : "none", 1);
  return true;
}
[[maybe_unused]] const bool kIsEnvironmentSet = set_environment();

std::atomic<bool> has_opened{false};

const cuda::Driver& driver() {
  static const std::shared_ptr<const cuda::Driver> opened = [] {
    has_opened = true;
    std::shared_ptr<const cuda::Driver> made;
    const Status status = cuda::Driver::open(kCuda, &made);
    expect(status.ok(), status.message);
    return made;
  }();
  return *opened;
}

// From the first call on, "libcuda.so.1" is the stand-in for the runtime, too.
const cuda::DriverFunctions& call() { return driver().call(); }

void require(int result, const char* doing) {
  expect(result == cuda::kSuccess, std::string(doing) + ": " + std::to_string(result));
}

// What a stand-in has beside CUDA's or NCCL's functions.
template <typename Function>
Function* asked(const char* name, const std::string& library = kStandIn) {
  Function* found = nullptr;
  expect(find_function(::dlopen(library.c_str(), RTLD_NOW), name, &found), name);
  return found;
}

cuda::Address address_of(const void* memory) { return reinterpret_cast<cuda::Address>(memory); }

// What tests have of real GPUs' memory, and of memory pinned for them: all of it is taken when the
// first rank comes, and none given back. The driver's ways to allocate, to give back and to copy
// from memory that is not pinned may wait for what runs there, by the one context that all ranks
// have here: a rank's work that waits for another rank's, which waits at such a call.
class Arena {
 public:
  Arena(std::byte* begin, std::size_t bytes) : free_(begin), end_(begin + bytes) {}

  std::byte* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(bytes);
    if (found != blocks_.end()) return blocks_.extract(found).mapped();
    expect(bytes <= static_cast<std::size_t>(end_ - free_), "the tests' memory is used up");
    return std::exchange(free_, free_ + bytes);
  }
  void put(std::byte* block, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    blocks_.emplace(bytes, block);
  }

 private:
  std::mutex mutex_;
  std::byte* free_;
  std::byte* const end_;
  std::multimap<std::size_t, std::byte*> blocks_;  // by size
};

std::size_t size_of_block(std::size_t count) {
  return std::bit_ceil(std::max<std::size_t>(count, 256));
}

// Each with the device's context current.
Arena& there() {
  static Arena* const arena = [] {
    const std::size_t bytes = std::size_t{2} << 30;
    cuda::Address begin = 0;
    require(call().allocate(&begin, bytes), "allocate");
    return new Arena(reinterpret_cast<std::byte*>(begin), bytes);
  }();
  return *arena;
}

Arena& pinned() {
  static Arena* const arena = [] {
    const std::size_t bytes = std::size_t{1} << 30;
    void* begin = nullptr;
    require(call().allocate_host(&begin, bytes, 0), "allocate pinned memory");
    return new Arena(static_cast<std::byte*>(begin), bytes);
  }();
  return *arena;
}

}  // namespace

bool Gpu::is_real() { return kIsReal; }

bool Gpu::has_windows() {
  const char* const wanted = std::getenv("HVRUN_NCCL_WINDOWS");
  return wanted != nullptr && std::strcmp(wanted, "1") == 0;
}

int Gpu::devices() { return driver().devices(); }

Gpu::Gpu(int rank) : device_(rank % devices()) {
  enter();
  require(call().make_stream(&stream_, cuda::kStreamNonBlocking, 0), "make a stream");
  if (kIsReal) (void)there(), (void)pinned();
}

Gpu::~Gpu() {
  if (!kIsReal) capture(false);  // where a test has failed meanwhile
  let_go();
  enter();
  while (call().stream_query(stream_) == cuda::kNotReady) std::this_thread::yield();
  for (const auto& [block, source] : blocks_) give_back(block);
  call().destroy_stream(stream_);
}

// Every thread that comes has the device's context from then on.
void Gpu::enter() const {
  cuda::Context context = nullptr;
  require(call().retain_context(&context, device_), "make a context");
  require(call().push_context(context), "take it");
}

std::byte* Gpu::put(const void* bytes, std::size_t count) {
  enter();
  Block made;
  if (kIsReal) {
    made.size = size_of_block(count);
    made.source = {pinned().take(made.size),
                   [size = made.size](std::byte* block) { pinned().put(block, size); }};
  } else {
    made.size = std::max<std::size_t>(count, 1);
    made.source = std::shared_ptr<std::byte[]>(new std::byte[made.size]);
  }
  cuda::Address block = 0;
  if (kIsReal)
    block = address_of(there().take(made.size));
  else
    require(call().allocate(&block, made.size), "allocate");
  if (bytes != nullptr && count > 0) {
    std::memcpy(made.source.get(), bytes, count);
    require(call().copy_to_device(block, made.source.get(), count, stream_), "copy there");
  }
  blocks_[block] = std::move(made);
  return reinterpret_cast<std::byte*>(block);
}

void Gpu::fill(std::byte* to, const void* bytes, std::size_t count) {
  const std::byte* const source = put(bytes, count);
  enter();
  require(call().copy_on_device(address_of(to), address_of(source), count, stream_), "copy");
}

void Gpu::take_away(const std::byte* block) {
  enter();
  settle();
  give_back(address_of(block));
  blocks_.erase(address_of(block));
}

void Gpu::give_back(cuda::Address block) {
  if (kIsReal)
    there().put(reinterpret_cast<std::byte*>(block), blocks_[block].size);
  else
    require(call().free(block), "free");
}

// Asks again and again: nothing waits in the driver meanwhile.
void Gpu::settle() {
  int state = call().stream_query(stream_);
  for (; state == cuda::kNotReady; state = call().stream_query(stream_)) std::this_thread::yield();
  require(state, "carry out what the stream was given");
}

Bytes Gpu::get(const void* from, std::size_t count) {
  enter();
  Bytes bytes(count);
  const std::size_t size = size_of_block(count);
  std::byte* const by = kIsReal ? pinned().take(size) : bytes.data();
  if (count > 0) require(call().copy_to_host(by, address_of(from), count, stream_), "copy back");
  settle();
  if (kIsReal) {
    std::memcpy(bytes.data(), by, count);
    pinned().put(by, size);
  }
  return bytes;
}

void Gpu::hold() {
  enter();
  is_held_ = true;
  const auto wait = [](void* held) {
    while (*static_cast<std::atomic<bool>*>(held)) std::this_thread::yield();
  };
  if (kIsReal)
    require(asked<int(cuda::Stream, void (*)(void*), void*)>("cuLaunchHostFunc", kCuda)(
                stream_, wait, &is_held_),
            "hold a stream");
  else
    asked<decltype(fake_cuda_put)>("fake_cuda_put")(stream_, wait, &is_held_);
}

bool Gpu::is_idle() const {
  enter();
  return call().stream_query(stream_) == cuda::kSuccess;
}

void Gpu::capture(bool is_on) {
  const auto begin_or_end = asked<decltype(fake_cuda_capture)>("fake_cuda_capture");
  begin_or_end(stream_, is_on);
}

void Gpu::set_faults(const std::string& list) {
  asked<decltype(fake_cuda_faults)>("fake_cuda_faults")(list.c_str());
}

void Gpu::set_nccl_faults(const std::string& list) {
  asked<decltype(fake_nccl_faults)>("fake_nccl_faults", kNcclStandIn)(list.c_str());
}

int Gpu::calls(const std::string& function) {
  return asked<decltype(fake_cuda_calls)>("fake_cuda_calls")(function.c_str());
}

int Gpu::failures() { return asked<decltype(fake_cuda_failures)>("fake_cuda_failures")(); }

int Gpu::left() { return asked<decltype(fake_cuda_left)>("fake_cuda_left")(); }

int Gpu::nccl_calls(const std::string& function) {
  return kIsReal
             ? 0
             : asked<decltype(fake_nccl_calls)>("fake_nccl_calls", kNcclStandIn)(function.c_str());
}

int Gpu::nccl_left() {
  return kIsReal ? 0 : asked<decltype(fake_nccl_left)>("fake_nccl_left", kNcclStandIn)();
}

bool Gpu::has_begun() { return has_opened; }

}  // namespace hv::runtime
