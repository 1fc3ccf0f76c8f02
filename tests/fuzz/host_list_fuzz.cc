// Hosts as a user writes them: -H (first byte 'H') and hostfiles.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "launcher/allocation/host_list.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::launcher;

namespace {

bool is_plain(const std::string& text) {
  return std::none_of(text.begin(), text.end(),
                      [](unsigned char c) { return c <= ' ' || c == 127; });
}

// What later becomes a word of a remote command line and a name in messages.
void check(const HostList& list) {
  HV_CHECK(!list.entries.empty() && list.entries.size() <= kMostHosts, "some hosts");
  HV_CHECK(!list.this_machine, "hosts were named");
  std::set<std::pair<std::string, std::string>> seen;
  for (const HostEntry& entry : list.entries) {
    HV_CHECK(!entry.name.empty() && entry.name.size() <= 253, "a name within bounds");
    HV_CHECK(entry.name[0] != '-' && is_plain(entry.name), "a name that is no option");
    HV_CHECK(entry.user.empty() || (entry.user[0] != '-' && is_plain(entry.user)), "a user's name");
    HV_CHECK(!entry.slots || (*entry.slots >= 1 && *entry.slots <= kMostSlotsPerHost), "slots");
    HV_CHECK(!entry.origin.empty(), "where it was named");
    HV_CHECK(seen.emplace(entry.user, entry.name).second, "each host once");
  }
}

// The same hosts, written anew, are the same hosts.
void check_again(const HostList& list) {
  std::string file;
  for (const HostEntry& entry : list.entries) {
    const bool needs_brackets = entry.name.find(':') != std::string::npos;
    file += (entry.user.empty() ? "" : entry.user + "@") +
            (needs_brackets ? "[" + entry.name + "]" : entry.name) +
            (entry.slots ? " slots=" + std::to_string(*entry.slots) : "") + "\n";
  }
  if (file.find('#') != std::string::npos) return;  // -H takes it in a user's name
  const HostList again = parse_hostfile(file, "again");
  HV_CHECK(again.entries.size() == list.entries.size(), "as many");
  for (std::size_t i = 0; i < list.entries.size(); ++i) {
    HV_CHECK(again.entries[i].name == list.entries[i].name, "the same name");
    HV_CHECK(again.entries[i].user == list.entries[i].user, "the same user");
    HV_CHECK(again.entries[i].slots == list.entries[i].slots, "the same slots");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(fuzz::view(data, size));
  const bool is_expression = input.byte() == 'H';
  const std::string_view text = input.rest();
  try {
    const HostList list = is_expression ? parse_host_expression(text) : parse_hostfile(text, "f");
    check(list);
    check_again(list);
  } catch (const Error& error) {
    HV_CHECK(error.kind() == ErrorKind::kUsage, "the user's mistake");
    HV_CHECK(!error.hint().empty(), "and what was expected");
    const std::string words = error.what();
    HV_CHECK(words.size() < 8000, "in few words");
    HV_CHECK(words.find('\0') == std::string::npos && words.find('\x1b') == std::string::npos,
             "that leave the terminal as it is");
  }
  return 0;
}
