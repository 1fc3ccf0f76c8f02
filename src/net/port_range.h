// PortRange: which TCP ports a listening socket may take. A value; no I/O.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hv {

// first..last, both included. 0..0: any port that the kernel gives.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  std::uint16_t kept_for_others = 0;  // of these, not to be listened on; 0: none

  bool is_any() const { return first == 0; }
  int count() const { return last - first + 1; }
  std::string text() const;  // "20000-20099"; "20000"; "any"
};

// "20000-20099" or "20000"; "" is any port. Ports go from 1 to 65535.
std::optional<PortRange> parse_port_range(std::string_view text);

}  // namespace hv
