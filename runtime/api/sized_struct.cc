// The growth of the structs of hvrun.h.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/sized_struct.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/include/hvrun/hvrun.h"

namespace hv::runtime {
namespace {

constexpr std::size_t kMaxBytes = 4096;  // far above any future struct: more is no size

}  // namespace

Status copy_sized(const SizedStruct& what, const void* given, std::size_t known_bytes, void* copy) {
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  const std::string doing = std::string(what.doing) + ": ";
  if (size < sizeof size || size > kMaxBytes) {
    return {StatusCode::kArgument, doing + "struct_size is " + std::to_string(size) +
                                       "; begin the struct with " + what.begin_with};
  }
  const auto* bytes = static_cast<const unsigned char*>(given);
  if (size > known_bytes && std::any_of(bytes + known_bytes, bytes + size,
                                        [](unsigned char byte) { return byte != 0; })) {
    return {StatusCode::kArgument, doing + "the struct sets a field that this libhvrun (" +
                                       std::to_string(HVRUN_VERSION_MAJOR) + "." +
                                       std::to_string(HVRUN_VERSION_MINOR) +
                                       ") does not know; use a newer library"};
  }
  std::memset(copy, 0, known_bytes);
  std::memcpy(copy, given, std::min(size, known_bytes));
  return Status::success();
}

}  // namespace hv::runtime
