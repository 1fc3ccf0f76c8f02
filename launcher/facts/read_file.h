// Small files of /proc and /sys as text. Blocking, but these files never wait.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hv::launcher {

// Reads the kernel's log from /dev/kmsg, from where the descriptor (O_NONBLOCK) stands to the log's
// end, without waiting. Calls take for each line "priority,sequence,microseconds,flags;message".
// Returns errno of a read that failed, else 0.
int read_kernel_messages(int log, const std::function<void(std::string_view line)>& take);

// The file's bytes, at most limit of them; none when it cannot be opened or read.
std::optional<std::string> read_file(const std::string& path, std::size_t limit = 1 << 20);

// Names in a folder without "." and "..", in no order; empty when it cannot be read.
std::vector<std::string> names_in(const std::string& folder);

// The rest of the first line that begins with label, trimmed: value_after("MemTotal:", ...) is "16
// kB".
std::optional<std::string> value_after(std::string_view label, std::string_view text);

// That rest as a set of bits in hexadecimal, such as "CapEff:" of /proc/PID/status; none when the
// line is missing or holds anything else.
std::optional<std::uint64_t> bits_after(std::string_view label, std::string_view text);

}  // namespace hv::launcher
