// Hosts as users and schedulers write them. The first byte says who: 'H' -H, 'R' a rankfile, 'I'
// and 'E' --include and --exclude, 'C' -H beside a hostfile, 'S' Slurm's variables, '0' to '6' a
// hostfile of that form, anything else one of any form.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>

#include "launcher/allocation/host_choice.h"
#include "launcher/allocation/host_expression.h"
#include "launcher/allocation/hostfile.h"
#include "launcher/allocation/rankfile.h"
#include "launcher/allocation/scheduler.h"
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
    HV_CHECK(!entry.slots || (*entry.slots >= 0 && *entry.slots <= kMostSlotsPerHost), "slots");
    HV_CHECK(!entry.max_slots || *entry.max_slots >= 1, "max-slots");
    HV_CHECK(entry.identity.empty() || (entry.identity[0] != '-' && is_plain(entry.identity)),
             "a file that is no option");
    HV_CHECK(entry.address.size() <= 253 && (entry.address.empty() || entry.address[0] != '-') &&
                 is_plain(entry.address),
             "an address that is no option");
    HV_CHECK(is_plain(entry.interfaces), "names of interfaces");
    for (const std::string& gpu : entry.gpus) HV_CHECK(!gpu.empty() && is_plain(gpu), "a GPU");
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

namespace {

const HostList& lab() {
  static const HostList list =
      parse_hostfile("w1 slots=4\nw2 slots=2 gpus=5,7\nw3\nu@w4 slots=1\n", "lab");
  return list;
}

// None for an empty list of nodes: that is no job.
std::optional<HostList> of_slurm(std::string_view text) {
  const std::size_t gap = std::min(text.find('\n'), text.size());
  Environment environment;
  environment.set("SLURM_JOB_ID", "1");
  environment.set("SLURM_NTASKS", "1");
  environment.set("SLURM_JOB_NODELIST", std::string(text.substr(0, gap)));
  environment.set("SLURM_TASKS_PER_NODE", std::string(text.substr(std::min(gap + 1, text.size()))));
  const auto hosts = hosts_of_slurm(environment, nullptr);
  HV_CHECK(hosts.has_value() == (gap > 0), "hosts where nodes are named, and only there");
  return hosts;
}

std::optional<HostList> read(char who, std::string_view text) {
  if (who == 'H') return parse_host_expression(text);
  if (who == 'R') return add_rankfile({{}, true}, text, "f");
  if (who == 'I') return include_hosts(lab(), text);
  if (who == 'E') return exclude_hosts(lab(), text);
  if (who == 'C') return choose_hosts(lab(), "lab", text);
  if (who == 'S') return of_slurm(text);
  const bool is_form = who >= '0' && who <= '6';
  return parse_hostfile(text, "f", is_form ? HostfileForm(who - '0') : HostfileForm::kAny);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(fuzz::view(data, size));
  const char who = static_cast<char>(input.byte());
  const std::string_view text = input.rest();
  try {
    const auto list = read(who, text);
    if (!list) return 0;
    check(*list);
    check_again(*list);
    for (const RankPlace& place : list->rank_places)
      HV_CHECK(place.entry < list->entries.size(), "a host that is there");
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
