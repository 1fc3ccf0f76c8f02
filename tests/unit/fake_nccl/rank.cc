// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/fake_nccl/rank.h"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <stdlib.h>

#include <string>
#include <thread>

#include "src/base/symbol.h"
#include "tests/fakes/nccl/fake_nccl.h"
#include "tests/unit/paths.h"

namespace hv {
namespace {

const std::string kLibraries = tests::test_library(".");

nccl::Functions open_nccl() {
  ::setenv("HVRUN_FAKE_NCCL_DELAY_US", "3000", 0);
  void* const library = ::dlopen((kLibraries + "/nccl/libnccl.so.2").c_str(), RTLD_NOW);
  REQUIRE_MESSAGE(library != nullptr, ::dlerror());
  nccl::Functions call;
#define HV_ONE(here, exported, parameters) REQUIRE(find_function(library, #exported, &call.here));
  HV_NCCL_FUNCTIONS(HV_ONE)
  HV_NCCL_NEWER_FUNCTIONS(HV_ONE)
#undef HV_ONE
  REQUIRE(find_function(library, "ncclGetLastError", &call.last_error));
  REQUIRE(find_function(library, "fake_nccl_faults", &call.set_faults));
  REQUIRE(find_function(library, "fake_nccl_left", &call.left));
  REQUIRE(find_function(library, "fake_nccl_guests", &call.guests));
  return call;
}

void destroy(Rank& rank) {
  if (rank.comm == nullptr) return;
  CHECK(rank.settle() == nccl::kSuccess);
  CHECK(nccl_call().destroy(rank.comm) == nccl::kSuccess);
}

}  // namespace

const nccl::Functions& nccl_call() {
  static const nccl::Functions call = open_nccl();
  return call;
}

const cuda::DriverFunctions& cuda_call() {
  static const std::shared_ptr<const cuda::Driver> driver = [] {
    ::setenv("HVRUN_FAKE_CUDA_DELAY_US", "300", 0);
    ::setenv("HVRUN_FAKE_CUDA_DEVICES", "4", 0);
    std::shared_ptr<const cuda::Driver> made;
    REQUIRE(cuda::Driver::open(kLibraries + "/cuda/libcuda.so.1", &made).ok());
    return made;
  }();
  return driver->call();
}

void use_gpu(int device) {
  cuda::Context context = nullptr;
  CHECK(cuda_call().retain_context(&context, device) == cuda::kSuccess);
  CHECK(cuda_call().push_context(context) == cuda::kSuccess);
}

Rank::Rank(int own, int all) : rank(own), ranks(all) {
  use_gpu(own);
  CHECK(cuda_call().make_stream(&stream, cuda::kStreamNonBlocking, 0) == cuda::kSuccess);
}

Rank::~Rank() {
  CHECK(cuda_call().stream_synchronize(stream) == cuda::kSuccess);
  for (const cuda::Address block : blocks_) CHECK(cuda_call().free(block) == cuda::kSuccess);
  CHECK(cuda_call().destroy_stream(stream) == cuda::kSuccess);
}

int Rank::join(const nccl::UniqueId& id, bool is_blocking) {
  nccl::Config config;
  config.blocking = is_blocking ? 1 : 0;
  const int result = nccl_call().init_rank(&comm, ranks, id, rank, &config);
  return result == nccl::kInProgress ? settle() : result;
}

int Rank::settle(nccl::Comm comm) {
  int error = nccl::kInProgress;
  while (error == nccl::kInProgress) {
    CHECK(nccl_call().async_error(comm, &error) == nccl::kSuccess);
    std::this_thread::yield();
  }
  return error;
}

bool Rank::has_launched(int result) const {
  return result == nccl::kSuccess || (result == nccl::kInProgress && settle() == nccl::kSuccess);
}

void* Rank::room(std::size_t bytes) {
  cuda::Address block = 0;
  CHECK(cuda_call().allocate(&block, bytes) == cuda::kSuccess);
  blocks_.push_back(block);
  return reinterpret_cast<void*>(block);
}

void* Rank::put_bytes(const void* from, std::size_t bytes) {
  void* const made = room(bytes);
  const auto to = reinterpret_cast<cuda::Address>(made);
  CHECK(cuda_call().copy_to_device(to, from, bytes, stream) == cuda::kSuccess);
  CHECK(cuda_call().stream_synchronize(stream) == cuda::kSuccess);
  return made;
}

void Rank::get_bytes(void* to, const void* from, std::size_t bytes) {
  const auto source = reinterpret_cast<cuda::Address>(from);
  CHECK(cuda_call().copy_to_host(to, source, bytes, stream) == cuda::kSuccess);
  CHECK(cuda_call().stream_synchronize(stream) == cuda::kSuccess);
}

nccl::UniqueId make_id() {
  nccl::UniqueId id = {};
  CHECK(nccl_call().make_unique_id(&id) == nccl::kSuccess);
  return id;
}

void run_threads(int ranks, const std::function<void(Rank&)>& does) {
  nccl_call();
  cuda_call();
  std::vector<std::thread> threads;
  for (int number = 0; number < ranks; ++number)
    threads.emplace_back([&, number] {
      Rank rank(number, ranks);
      does(rank);
    });
  for (std::thread& one : threads) one.join();
}

void run_ranks(int ranks, const std::function<void(Rank&)>& does) {
  const nccl::UniqueId id = make_id();
  run_threads(ranks, [&](Rank& rank) {
    CHECK(rank.join(id) == nccl::kSuccess);
    does(rank);
    destroy(rank);
  });
}

}  // namespace hv
