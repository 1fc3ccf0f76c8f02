// GPUs for ranks that are threads of a test: memory there, and a stream of each rank's own.
// SPDX-License-Identifier: Apache-2.0
//
// They are the stand-in's, where work comes late; with HVRUN_TEST_MEMORY=gpu real ones, which ranks
// share. Where those or an NCCL that can do it are missing, the program ends at once, with the
// reason and exit code 77.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "runtime/device/accelerator.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/include/hvrun/hvrun.h"
#include "tests/ranks/reference.h"

namespace hv::runtime {

class Gpu {
 public:
  static int devices();       // that this process has
  static bool is_real();      // with HVRUN_TEST_MEMORY=gpu
  static bool has_windows();  // with HVRUN_NCCL_WINDOWS=1

  // One of them for this rank. What it keeps goes with it: after the last wait.
  explicit Gpu(int rank);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  int number() const { return device_; }
  void* stream() const { return stream_; }
  // Memory there, which the stream fills with these bytes some time.
  std::byte* put(const void* bytes, std::size_t count);
  // The same into memory that is there already.
  void fill(std::byte* to, const void* bytes, std::size_t count);
  // It is not needed any more, by whatever was given to any stream.
  void take_away(const std::byte* block);
  // What lies there when all is done that the stream has been given.
  Bytes get(const void* from, std::size_t count);
  template <typename T>
  std::vector<T> values(const void* from, std::size_t count) {
    const Bytes bytes = get(from, count * sizeof(T));
    std::vector<T> result(count);
    if (count > 0) std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }
  // The request for what lies there: device and stream.
  void place(hvrun_request* request) const {
    request->device = 1 + device_;
    request->stream = stream_;
  }
  // What the stream is given from now on begins once it is let go.
  void hold();
  void let_go() { is_held_ = false; }
  // All that the stream has been given is done.
  bool is_idle() const;
  // A graph is being captured from the stream, or no longer.
  void capture(bool is_on);
  // What goes wrong from now on, of all ranks' calls: tests/fakes/cuda/faults.h; "": nothing.
  static void set_faults(const std::string& list);
  // The same of NCCL's functions: tests/fakes/nccl/fake_nccl.h.
  static void set_nccl_faults(const std::string& list);
  // How often that function of CUDA's has been called, by all ranks.
  static int calls(const std::string& function);
  // On how many of all streams something has failed.
  static int failures();
  // What the stand-in has made, and has not been given back: streams, events and pieces of memory.
  static int left();
  static int nccl_calls(const std::string& function);
  // The same of the stand-in for NCCL: communicators, registrations and pieces of memory.
  static int nccl_left();
  // True: this process has asked the stand-in for something, so its children cannot.
  static bool has_begun();

 private:
  struct Block {
    std::size_t size = 0;
    std::shared_ptr<std::byte[]> source;  // what is copied there, which may not be done yet
  };

  void enter() const;
  void settle();
  void give_back(cuda::Address block);

  const int device_;
  cuda::Stream stream_ = nullptr;
  std::atomic<bool> is_held_{false};
  std::map<cuda::Address, Block> blocks_;
};

}  // namespace hv::runtime
