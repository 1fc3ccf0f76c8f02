// The stand-in for CUDA's driver behaves as the driver does where that is what the runtime is to be
// tested against.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "runtime/device/cuda/driver.h"
#include "tests/fakes/cuda/fake_cuda.h"
#include "tests/unit/cuda/stand_in.h"

using namespace hv::cuda;

namespace {

const Driver& driver() { return *driver_under_test(); }

Stream make_stream() {
  Stream stream = nullptr;
  REQUIRE(driver().call().make_stream(&stream, kStreamNonBlocking, -1) == kSuccess);
  return stream;
}

Event make_event() {
  Event event = nullptr;
  REQUIRE(driver().call().make_event(&event, kEventDisableTiming) == kSuccess);
  return event;
}

Address make_memory(std::size_t bytes) {
  Address address = 0;
  REQUIRE(driver().call().allocate(&address, bytes) == kSuccess);
  return address;
}

}  // namespace

TEST_CASE("the stand-in's memory cannot be read by its address") {
  const Address address = make_memory(64);
  char byte = 0;
  iovec here{&byte, 1}, there{reinterpret_cast<void*>(address), 1};
  CHECK(::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) == -1);
  const auto view = asked<decltype(fake_cuda_view)>("fake_cuda_view");
  CHECK(view(address, 64) != nullptr);
  CHECK(view(address + 1, 64) == nullptr);
  int ordinal = 0;
  CHECK(driver().call().pointer_attribute(&ordinal, kPointerDeviceOrdinal, address + 63) == 0);
  CHECK(ordinal == 1);
  CHECK(driver().call().pointer_attribute(&ordinal, kPointerDeviceOrdinal, address + 64) != 0);
  CHECK(driver().call().free(address) == kSuccess);
  CHECK(driver().call().free(address) != kSuccess);
}

TEST_CASE("a stream keeps its order, and waits for another one's events as they were then") {
  const DriverFunctions& call = driver().call();
  std::vector<int> in(1000), out(1000);
  std::iota(in.begin(), in.end(), 0);
  const std::size_t bytes = in.size() * sizeof(int);
  const Address first = make_memory(bytes), second = make_memory(bytes);
  const Stream one = make_stream(), other = make_stream();
  const Event copied = make_event();
  CHECK(call.event_query(copied) == kSuccess);  // never recorded
  REQUIRE(call.copy_to_device(first, in.data(), bytes, one) == kSuccess);
  REQUIRE(call.copy_on_device(second, first, bytes, one) == kSuccess);
  REQUIRE(call.record_event(copied, one) == kSuccess);
  REQUIRE(call.stream_wait(other, copied, 0) == kSuccess);
  REQUIRE(call.copy_to_host(out.data(), second, bytes, other) == kSuccess);
  REQUIRE(call.stream_synchronize(other) == kSuccess);
  CHECK(call.event_query(copied) == kSuccess);
  CHECK(out == in);
  for (const Stream stream : {one, other}) CHECK(call.destroy_stream(stream) == kSuccess);
  CHECK(call.destroy_event(copied) == kSuccess);
  for (const Address address : {first, second}) CHECK(call.free(address) == kSuccess);
}

TEST_CASE("work that goes wrong is told by what comes later on its stream") {
  const DriverFunctions& call = driver().call();
  const Stream stream = make_stream();
  const Address address = make_memory(16);
  REQUIRE(call.fill(address, 1, 17, stream) == kSuccess);  // a byte too much
  CHECK(call.stream_synchronize(stream) == 700);
  CHECK(call.copy_on_device(address, address, 1, stream) == 700);
  CHECK(call.destroy_stream(stream) == kSuccess);
  CHECK(call.free(address) == kSuccess);
}

TEST_CASE("a function can be told to fail") {
  const Stream stream = make_stream();
  const Address address = make_memory(16);
  tell_faults("cuMemsetD8Async@2=700");
  int results[2];
  for (int& result : results) result = driver().call().fill(address, 1, 16, stream);
  tell_faults("");
  CHECK(results[0] == kSuccess);
  CHECK(results[1] == 700);
  CHECK(driver().check(700, "fill").message ==
        "fill: CUDA_ERROR_ILLEGAL_ADDRESS (as the stand-in was told)");
  CHECK(driver().call().destroy_stream(stream) == kSuccess);
  CHECK(driver().call().free(address) == kSuccess);
}

TEST_CASE("a thread without a context is refused") {
  const DriverFunctions& call = driver().call();  // its context is this thread's
  std::thread([&call] {
    Address address = 0;
    CHECK(call.allocate(&address, 1) == 201);
  }).join();
}

TEST_CASE("what a capture forbids breaks it, unless the thread allows itself all") {
  const DriverFunctions& call = driver().call();
  const auto capture = asked<decltype(fake_cuda_capture)>("fake_cuda_capture");
  const auto broke = asked<decltype(fake_cuda_broke_capture)>("fake_cuda_broke_capture");
  const Stream stream = make_stream();
  const Event event = make_event();
  capture(stream, true);
  int status = kCapturesNone;
  CHECK(call.stream_captures(stream, &status) == kSuccess);
  CHECK(status != kCapturesNone);
  int mode = kCaptureRelaxed;
  CHECK(call.exchange_capture_mode(&mode) == kSuccess);
  CHECK(call.event_query(event) == kSuccess);
  CHECK_FALSE(broke());
  CHECK(call.exchange_capture_mode(&mode) == kSuccess);
  CHECK(call.event_query(event) == kStreamCaptureUnsupported);
  CHECK(broke());
  capture(stream, false);
  CHECK(call.destroy_stream(stream) == kSuccess);
  CHECK(call.destroy_event(event) == kSuccess);
}
