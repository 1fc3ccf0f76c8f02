// What every fuzz target has: its entry, seeds that no text file holds, and a reader of structured
// inputs.
// SPDX-License-Identifier: Apache-2.0
//
// A target asserts by HV_CHECK: what does not hold aborts, and the driver (or libFuzzer) keeps the
// input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "src/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace hv::fuzz {

// Beside the files of corpus/<name>; only targets of binary formats define it.
__attribute__((weak)) std::vector<std::string> seeds();

inline std::string_view view(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Cuts values off the front of an input; what is not there is zero or empty.
class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  std::uint8_t byte() { return number<std::uint8_t>(); }
  template <class Number>
  Number number() {
    static_assert(std::is_arithmetic_v<Number>);
    Number value{};
    const std::string_view raw = take(sizeof value);
    if (raw.size() == sizeof value) std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  // A length byte and so many bytes, or as many as are left.
  std::string_view piece() { return take(byte()); }
  std::string_view take(std::size_t size) {
    const std::string_view front = rest_.substr(0, size);
    rest_.remove_prefix(front.size());
    return front;
  }
  std::string_view rest() { return take(rest_.size()); }

 private:
  std::string_view rest_;
};

// As Input::piece() reads it.
inline std::string piece(std::string_view bytes) {
  return static_cast<char>(bytes.size()) + std::string(bytes);
}

}  // namespace hv::fuzz
