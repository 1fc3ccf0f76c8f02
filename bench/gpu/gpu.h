// One GPU for what is measured on it, and what was measured.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/cuda/device.h"
#include "runtime/device/cuda/kernels.h"
#include "src/base/status.h"

namespace bench {

// The reason, and the exit code by which a test is skipped.
[[noreturn]] inline void skip(const std::string& reason) {
  std::printf("skipped: %s\n", reason.c_str());
  std::exit(77);
}

inline void require(const hv::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "bench_gpu: %s\n", status.message.c_str());
  std::exit(1);
}

inline hv::cuda::Address address_of(const hv::runtime::MemoryPtr& memory) {
  return reinterpret_cast<hv::cuda::Address>(memory.get());
}

// The first one, with its context current in the thread that made it.
struct Gpu {
  Gpu() {
    if (const hv::Status found = hv::cuda::Driver::open("libcuda.so.1", &driver); !found.ok())
      skip(found.message);
    require(driver->check(driver->call().retain_context(&context, 0), "make a context"));
    enter();
    require(hv::cuda::Device::open(driver, 0, &device));
    require(hv::cuda::Kernels::load(driver, &kernels));
    char text[100] = "";
    driver->call().device_name(text, sizeof text, 0);
    name = text;
  }
  // Every other thread that comes.
  void enter() const { require(driver->check(driver->call().push_context(context), "take it")); }
  hv::runtime::MemoryPtr memory(std::size_t bytes) const {
    hv::runtime::MemoryPtr made;
    require(device->allocate(bytes, &made));
    require(device->clear(device->work(), made.get(), bytes));
    settle(device->work());
    return made;
  }
  void settle(hv::cuda::Stream stream) const {
    require(driver->check(driver->call().stream_synchronize(stream), "wait"));
  }

  std::shared_ptr<const hv::cuda::Driver> driver;
  hv::cuda::Context context = nullptr;
  std::shared_ptr<hv::cuda::Device> device;
  std::shared_ptr<const hv::cuda::Kernels> kernels;
  std::string name;
};

struct Measured {
  std::size_t bytes = 0;      // read and written, or reduced; 0: that says nothing
  std::string beside;         // what it is compared with; empty: nothing
  bool is_bandwidth = false;  // compared by bytes a second, else by seconds
  std::vector<double> seconds;
};

using Figures = std::map<std::string, Measured>;

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// A line of JSON each. Of what is compared: the median of the rounds' ratios.
inline void print(const Figures& figures) {
  for (const auto& [what, one] : figures) {
    const double seconds = median(one.seconds);
    std::printf("{\"what\": \"%s\", \"median_us\": %.3f", what.c_str(), seconds * 1e6);
    if (one.bytes > 0)
      std::printf(", \"gb_per_s\": %.2f", static_cast<double>(one.bytes) / seconds / 1e9);
    const auto beside = figures.find(one.beside);
    if (beside != figures.end()) {
      std::vector<double> ratios;
      for (std::size_t i = 0; i < one.seconds.size(); ++i) {
        const double times = one.seconds[i] / beside->second.seconds[i];
        ratios.push_back(one.is_bandwidth ? static_cast<double>(one.bytes) / times /
                                                static_cast<double>(beside->second.bytes)
                                          : times);
      }
      std::printf(", \"%s_of\": \"%s\", \"ratio\": %.4f", one.is_bandwidth ? "bandwidth" : "time",
                  one.beside.c_str(), median(std::move(ratios)));
    }
    std::printf("}\n");
  }
}

}  // namespace bench
