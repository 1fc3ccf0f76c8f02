// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/kernels.h"

#include <algorithm>
#include <utility>

#include "runtime/device/cuda/kernel_images.h"
#include "runtime/device/cuda/kernels/kernel_list.h"

namespace hv::cuda {
namespace {

using runtime::ElementType;

constexpr int kOldestCapability = 75;  // ten times the compute capability
// A GPU runs up to eight blocks of ours a multiprocessor at a time. With some more in line none is
// idle while the last ones end, and each still takes many chunks of a large bucket.
constexpr unsigned kBlocksPerMultiprocessor = 32;

// What the driver answers where an image is not for it or for the card.
bool is_refusal(int result) {
  constexpr int kRefusals[] = {
      kInvalidImage,        kNoBinaryForGpu,        kInvalidPtx,
      kJitCompilerNotFound, kUnsupportedPtxVersion, kJitCompilationDisabled};
  return std::find(std::begin(kRefusals), std::end(kRefusals), result) != std::end(kRefusals);
}

// False: the list is full.
bool add(StripList* list, const Strip& strip, std::uint64_t count, std::uint32_t chunk) {
  const std::uint64_t chunks = (count + chunk - 1) / chunk;
  if (list->count == kMostStrips || list->chunks + chunks > UINT32_MAX) return false;
  list->chunks += static_cast<std::uint32_t>(chunks);
  const auto last = static_cast<std::uint32_t>(count - (chunks - 1) * chunk);
  list->strips[list->count++] = {strip.from, strip.to, list->chunks, last};
  return true;
}

}  // namespace

Status Kernels::load(std::shared_ptr<const Driver> driver, std::shared_ptr<const Kernels>* made) {
  std::shared_ptr<Kernels> kernels(new Kernels(std::move(driver)));
  if (Status begun = kernels->begin(); !begun.ok()) return begun;
  *made = std::move(kernels);
  return Status::success();
}

Kernels::~Kernels() {
  if (module_ != nullptr) call().unload_module(module_);
}

Status Kernels::begin() {
  int device = 0, multiprocessors = 0;
  if (Status status = driver_->check(call().current_device(&device), "ask for the context's GPU");
      !status.ok())
    return status;
  char name[100] = "";
  call().device_name(name, sizeof name, device);
  card_ = "GPU " + std::to_string(device) + " (" + name + ")";
  if (Status status = check_card(device); !status.ok()) return status;
  if (Status status =
          driver_->check(call().device_attribute(&multiprocessors, kMultiprocessorCount, device),
                         card_ + ": ask for its size");
      !status.ok())
    return status;
  most_blocks_ = kBlocksPerMultiprocessor * static_cast<unsigned>(std::max(multiprocessors, 1));
  if (Status status = load_module(); !status.ok()) return status;
  return find_functions();
}

Status Kernels::check_card(int device) {
  int major = 0, minor = 0;
  const std::string doing = card_ + ": ask for its compute capability";
  for (const auto& [value, attribute] :
       {std::pair{&major, kComputeCapabilityMajor}, std::pair{&minor, kComputeCapabilityMinor}}) {
    if (Status status = driver_->check(call().device_attribute(value, attribute, device), doing);
        !status.ok())
      return status;
  }
  capability_ = major * 10 + minor;
  if (capability_ >= kOldestCapability) return Status::success();
  return {StatusCode::kUnsupported, card_ + ": its compute capability is " + std::to_string(major) +
                                        "." + std::to_string(minor) +
                                        ", and the kernels are for 7.5 and newer"};
}

// The fatbin first: there the driver has nothing to compile. One that is older than the compiler
// which made it may refuse it, and takes the PTX.
Status Kernels::load_module() {
  std::string reasons;
  const std::pair<const char*, const void*> images[] = {{"fatbin", fatbin_image()},
                                                        {"PTX", ptx_image()}};
  for (const auto& [kind, image] : images) {
    if (image == nullptr) continue;
    const int result = call().load_module(&module_, image);
    if (result == kSuccess) return Status::success();
    module_ = nullptr;
    if (!is_refusal(result)) return driver_->check(result, card_ + ": load the kernels");
    reasons += std::string(reasons.empty() ? "" : ", ") + kind + ": " + driver_->words_of(result);
  }
  return {StatusCode::kUnsupported, card_ + ": its driver loads none of the kernels' images: " +
                                        reasons + "; try: a newer driver of NVIDIA's"};
}

Status Kernels::find_functions() {
  const auto find = [this](Function* function, const char* name) {
    return driver_->check(call().module_function(function, module_, name),
                          card_ + ": find the kernel " + name);
  };
#define HV_ONE(from, to, From, To, from_name, to_name)                                         \
  if (Status status = find(                                                                    \
          &functions_[static_cast<int>(ElementType::from)][static_cast<int>(ElementType::to)], \
          "hvrun_" #from_name "_to_" #to_name);                                                \
      !status.ok())                                                                            \
    return status;
  HV_MOVE_KERNELS(HV_ONE)
#undef HV_ONE
  return find(&copy_, "hvrun_copy");
}

Status Kernels::move(Stream stream, std::span<const Strip> strips, ElementType from, ElementType to,
                     const Scaling& scaling) const {
  const bool is_copy = from == to && scaling.factor == 1 && scaling.divisor == 1;
  const bool can_divide = from == to && is_integer(from);
  const Function function =
      is_copy ? copy_ : functions_[static_cast<int>(from)][static_cast<int>(to)];
  if (function == nullptr || (scaling.divisor != 1 && !can_divide))
    return {StatusCode::kUnsupported, std::string("no kernel scales ") +
                                          runtime::element_type_name(from) + " to " +
                                          runtime::element_type_name(to)};
  const std::size_t from_bytes = runtime::element_size(from), to_bytes = runtime::element_size(to);
  const std::uint64_t parts = is_copy ? from_bytes : 1;  // of an element, as the kernel counts
  const std::uint32_t chunk = is_copy ? chunk_elements(1, 1) : chunk_elements(from_bytes, to_bytes);
  StripList list;
  list.scaling = scaling;
  for (const Strip& strip : strips) {
    if (strip.count == 0 || add(&list, strip, strip.count * parts, chunk)) continue;
    if (Status status = launch(stream, function, &list); !status.ok()) return status;
    add(&list, strip, strip.count * parts, chunk);
  }
  return launch(stream, function, &list);
}

// The list is empty afterwards.
Status Kernels::launch(Stream stream, Function function, StripList* list) const {
  if (list->count == 0) return Status::success();
  void* arguments[] = {list};
  const int result = call().launch(function, std::min(list->chunks, most_blocks_), 1, 1,
                                   kBlockThreads, 1, 1, 0, stream, arguments, nullptr);
  list->count = list->chunks = 0;
  return driver_->check(result, card_ + ": launch a kernel");
}

}  // namespace hv::cuda
