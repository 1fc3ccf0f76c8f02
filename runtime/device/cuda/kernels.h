// The kernels that pack many tensors into one buffer on a GPU, and unpack it.
// SPDX-License-Identifier: Apache-2.0
//
// Any thread may call, with the context current that was when they were loaded; so it must be when
// they go.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/kernels/strip_list.h"
#include "runtime/device/element_type.h"

namespace hv::cuda {

// One tensor's part of a bucket.
struct Strip {
  Address from = 0, to = 0;
  std::uint64_t count = 0;  // elements
};

class Kernels {
 public:
  // Loads the module into the current context, all of it: a kernel that the driver loaded at its
  // first launch would wait there for whatever runs. kUnsupported with words: a card older than
  // 7.5, or a driver that takes neither the fatbin nor the PTX.
  static Status load(std::shared_ptr<const Driver> driver, std::shared_ptr<const Kernels>* made);
  ~Kernels();
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  int capability() const { return capability_; }  // ten times the card's compute capability

  // Each strip: to[i] = from[i] * factor / divisor, of type `from`, rounded to type `to`: the same
  // one, or float32 or float64 to float16 or bfloat16 and back. factor != 1 not for bool and 8-bit
  // floats, divisor != 1 for integers only, where it truncates. As the host's kernels do it, bit
  // for bit: scale, finish, pack and unpack; what scales nothing copies to the same type.
  // One launch for up to 169 strips, more launches beyond. Never blocks; the strips may go at once.
  // from may be to where their types are as wide, but must not overlap it otherwise.
  Status move(Stream stream, std::span<const Strip> strips, runtime::ElementType from,
              runtime::ElementType to, const Scaling& scaling) const;

 private:
  explicit Kernels(std::shared_ptr<const Driver> driver) : driver_(std::move(driver)) {}
  Status begin();
  Status check_card(int device);
  Status load_module();
  Status find_functions();
  Status launch(Stream stream, Function function, StripList* list) const;
  const DriverFunctions& call() const { return driver_->call(); }

  const std::shared_ptr<const Driver> driver_;
  std::string card_;  // "GPU 0 (its name)", for messages
  int capability_ = 0;
  unsigned most_blocks_ = 1;
  Module module_ = nullptr;
  Function copy_ = nullptr;
  Function functions_[runtime::kTypeNumbers][runtime::kTypeNumbers] = {};  // [ElementType from][to]
};

}  // namespace hv::cuda
