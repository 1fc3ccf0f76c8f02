// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/host_choice.h"

#include <algorithm>
#include <map>
#include <set>

#include "launcher/allocation/host_expression.h"
#include "launcher/allocation/host_names.h"
#include "launcher/allocation/host_words.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr const char* kChoiceForm = "hosts and slots such as w1:0,2@w2";

std::string advice_on_unknown(const HostList& list, const std::string& name) {
  std::vector<std::string> names;
  for (const HostEntry& entry : list.entries) names.push_back(entry.name);
  const auto meant = nearest(name, names);
  return (meant ? *meant + "? One of " : "one of ") + hosts_text(names);
}

// The hosts of --include or --exclude in their order, and which of each one's slots; none: all.
using Choice = std::pair<const HostEntry*, std::vector<int>>;

std::vector<int> slots_at(const Place& place, std::size_t begin, std::size_t end,
                          const HostEntry& entry) {
  std::vector<int> slots;
  const int known = entry.gpus.empty() ? entry.slots.value_or(kMostSlotsPerHost)
                                       : static_cast<int>(entry.gpus.size());
  for_each_piece(place.text, ',', begin, end, [&](std::size_t at, std::size_t to) {
    const std::string word = "'" + printable(place.text.substr(at, to - at)) + "'";
    const auto slot = parse_integer(place.text.substr(at, to - at));
    if (!slot || *slot < 0 || *slot >= kMostSlotsPerHost)
      mistake(place, at, word + " is no slot", kChoiceForm);
    if (*slot >= known)
      mistake(place, at, entry.name + " has no slot " + std::to_string(*slot),
              "slots 0 to " + std::to_string(known - 1) + ", as " + entry.origin + " states");
    if (std::find(slots.begin(), slots.end(), *slot) != slots.end())
      mistake(place, at, "slot " + word + " is named twice", kChoiceForm);
    slots.push_back(static_cast<int>(*slot));
  });
  return slots;
}

std::vector<Choice> parse_choices(const Place& place, const HostList& from,
                                  const AddressLookup& look_up) {
  std::vector<Choice> choices;
  HostIndex index(from, look_up);
  std::set<const HostEntry*> seen;
  const auto add = [&](std::size_t begin, std::size_t end) {
    const std::size_t colon = std::min(place.text.substr(0, end).find(':', begin), end);
    const std::string name(place.text.substr(begin, colon - begin));
    if (name.empty()) mistake(place, begin, "a host name is missing", kChoiceForm);
    const HostEntry* const entry = index.find("", name, place, begin);
    if (entry == nullptr)
      mistake(place, begin, "'" + printable(name) + "' is none of the hosts",
              name.find(',') == std::string::npos ? advice_on_unknown(from, name)
                                                  : "'@' between hosts, as in w1:0,2@w2");
    if (!seen.insert(entry).second)
      mistake(place, begin, "host '" + name + "' is named twice", kChoiceForm);
    choices.emplace_back(entry, std::vector<int>());
    if (colon < end) choices.back().second = slots_at(place, colon + 1, end, *entry);
  };
  for_each_piece(place.text, '@', 0, place.text.size(), add);
  return choices;
}

// The entry with these of its slots, each a GPU.
HostEntry with_slots(HostEntry entry, const std::vector<int>& slots) {
  std::vector<std::string> gpus;
  for (const int slot : slots)
    gpus.push_back(entry.gpus.empty() ? std::to_string(slot)
                                      : entry.gpus[static_cast<std::size_t>(slot)]);
  entry.gpus_are_slots = entry.gpus.empty() || entry.gpus_are_slots;
  entry.gpus = std::move(gpus);
  entry.slots = static_cast<int>(slots.size());
  return entry;
}

// The entry without these of its slots; none where none is left.
std::optional<HostEntry> without_slots(HostEntry entry, const std::vector<int>& slots) {
  if (!entry.slots && entry.gpus.empty()) {  // how many there are, the host will tell
    entry.without_gpus = slots;
    return entry;
  }
  const int count = entry.gpus.empty() ? *entry.slots : static_cast<int>(entry.gpus.size());
  std::vector<int> left;
  for (int slot = 0; slot < count; ++slot)
    if (std::find(slots.begin(), slots.end(), slot) == slots.end()) left.push_back(slot);
  if (left.empty()) return std::nullopt;
  return with_slots(std::move(entry), left);
}

}  // namespace

HostList choose_hosts(const HostList& from, const std::string& source, std::string_view wanted,
                      const AddressLookup& look_up) {
  const Place place{"-H", 0, wanted};
  HostList chosen;
  chosen.reach = from.reach;
  HostIndex index(from, look_up);
  std::set<const HostEntry*> seen;
  for (const HostEntry& host : parse_host_expression(wanted, place.source).entries) {
    const HostEntry* const entry = index.find(host.user, host.name, place, host.column);
    if (entry == nullptr)
      mistake(place, host.column, "'" + host.name + "' is none of the hosts of " + source,
              advice_on_unknown(from, host.name));
    if (!seen.insert(entry).second)
      mistake(place, host.column, "'" + host.name + "' is named in two ways",
              "one way of naming it, such as " + entry->name);
    chosen.entries.push_back(*entry);
    if (!host.slots) continue;
    if (entry->slots && *host.slots > *entry->slots)
      mistake(place, host.column,
              "'" + host.name + "' has " + std::to_string(*entry->slots) + " slots in " +
                  entry->origin + ", and " + std::to_string(*host.slots) + " are asked for",
              "at most as many, or more slots there");
    chosen.entries.back().slots = host.slots;
  }
  return chosen;
}

HostList include_hosts(const HostList& from, std::string_view expression,
                       const AddressLookup& look_up) {
  const Place place{"--include", 0, expression};
  HostList chosen;
  chosen.reach = from.reach;
  for (const auto& [entry, slots] : parse_choices(place, from, look_up))
    chosen.entries.push_back(slots.empty() ? *entry : with_slots(*entry, slots));
  return chosen;
}

HostList exclude_hosts(const HostList& from, std::string_view expression,
                       const AddressLookup& look_up) {
  const Place place{"--exclude", 0, expression};
  const std::vector<Choice> choices = parse_choices(place, from, look_up);
  const std::map<const HostEntry*, std::vector<int>> excluded(choices.begin(), choices.end());
  HostList left;
  left.reach = from.reach;
  for (const HostEntry& entry : from.entries) {
    const auto found = excluded.find(&entry);
    if (found == excluded.end()) {
      left.entries.push_back(entry);
    } else if (!found->second.empty()) {
      if (auto rest = without_slots(entry, found->second)) left.entries.push_back(std::move(*rest));
    }
  }
  if (left.entries.empty())
    mistake(place, 0, "no host or slot is left", "fewer of the hosts or their slots");
  return left;
}

}  // namespace hv::launcher
