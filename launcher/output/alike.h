// Whether two ranks said the same, but for what each rank has of its own: its number, pid, host,
// addresses and times. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hv::launcher {

// What is a rank's own.
struct Speaker {
  int rank = 0;
  std::uint32_t pid = 0;  // 0: not known
  std::string host{};
};

// Every text is alike itself, whoever says it; and alike is symmetric. A number counts as the
// rank's or the pid only where it is so on both sides, so "line 3" and "line 4" differ between
// ranks 0 and 1.
bool are_alike(std::string_view one, const Speaker& by_one, std::string_view other,
               const Speaker& by_other);
bool are_alike(const std::vector<std::string>& one, const Speaker& by_one,
               const std::vector<std::string>& other, const Speaker& by_other);

}  // namespace hv::launcher
