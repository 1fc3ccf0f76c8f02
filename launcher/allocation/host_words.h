// The words that every dialect is made of: a host with user and slots, and name=value. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/allocation/host_list.h"
#include "launcher/allocation/text_place.h"

namespace hv::launcher {

inline constexpr char kHostForm[] =
    "a host name or address, such as node1, user@node1, node[01-16] or [fd00::1]";

// "user@name:4": the name may be a node expression without commas outside of its brackets, or an
// address of IPv6 in brackets.
struct HostWord {
  std::string user;
  std::vector<std::string> names;
  std::optional<int> slots;
  std::size_t slots_at = 0;  // the column of what stands behind the colon
};

// Bytes [begin, end) of the place's text. most: names that it may stand for. Throws Error(kUsage).
HostWord parse_host_word(const Place& place, std::size_t begin, std::size_t end, std::size_t most);

// A number of slots from `least` to kMostSlotsPerHost.
int parse_slots(const Place& place, std::size_t begin, std::size_t end, int least = 0);

// What a line repeats for each of its hosts is bounded.
constexpr std::size_t kMostUserBytes = 256, kMostPathBytes = 1024, kMostInterfacesBytes = 256,
                      kMostUuidBytes = 64, kMostGpus = 64;

// "0,2", "GPU-5a1e...": GPUs of a host, each once.
std::vector<std::string> parse_gpus(const Place& place, std::size_t begin, std::size_t end);

// "slots=4", "max-slots = 8", "max_slots=8", "user=u", "port=22", "identity=FILE", "gpus=0,2",
// "address=10.0.0.1", "ifname=eth1": into the entry, where it may not be stated yet. Throws
// Error(kUsage), also for a name that is none of these.
void parse_host_setting(const Place& place, std::size_t begin, std::size_t end, HostEntry* entry);

// Whether the line of a host may have name=value: "port".
bool is_host_setting(std::string_view name);

// Where words of a line begin and end: cut at blanks, up to a '#'.
struct WordRange {
  std::size_t begin, end;
};
std::vector<WordRange> words_of_line(std::string_view line);

// Words from `first` on as settings: blanks may stand round a '='.
std::vector<WordRange> join_settings(std::string_view line, const std::vector<WordRange>& words,
                                     std::size_t first);

// name=value.
struct SettingWord {
  std::string name;
  std::optional<std::size_t> value;  // where it begins; none: there is no '='
};
SettingWord split_setting(const Place& place, std::size_t begin, std::size_t end);

}  // namespace hv::launcher
