// Which hosts, with how many slots: from -H, a hostfile, or this machine. Pure functions on text.
// SPDX-License-Identifier: Apache-2.0
//
// A mistake is an Error(kUsage) with file:line:column, the line, a caret and what was expected.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hv::launcher {

struct HostEntry {
  std::string name;          // without user, port and brackets
  std::string user;          // from user@host
  std::optional<int> slots;  // none: not stated; the host's GPUs decide, else 1
  std::string origin;        // "hosts:3" or "-H", for messages
};

struct HostList {
  std::vector<HostEntry> entries;  // in order of first mention, each host once
  bool this_machine = false;       // nobody named a host
};

constexpr int kMostSlotsPerHost = 65536;
constexpr std::size_t kMostHosts = 65536;
constexpr std::size_t kMostHostfileBytes = 16u << 20;

// "a:2,user@b:4,[fd00::1]:2,c"
HostList parse_host_expression(std::string_view text);

// A line per host: "name", "user@name", "name slots=4"; '#' starts a comment. A bare name that
// repeats has one slot a line; a name with stated slots that repeats has their sum. source names
// the file in messages.
HostList parse_hostfile(std::string_view content, const std::string& source);

}  // namespace hv::launcher
