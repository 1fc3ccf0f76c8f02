// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/host_list.h"

#include <algorithm>

#include "launcher/allocation/host_identity.h"
#include "launcher/allocation/host_words.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

[[noreturn]] void contradiction(const HostEntry& first, const Place& place, const char* what) {
  std::string expected = std::string("the same ") + what + " wherever the host is named";
  if (what == std::string_view("port"))
    expected += "; hosts behind one address have names of their own: 'first address=" + first.name +
                " port=2201', 'second address=" + first.name + " port=2202'";
  mistake(place, 0, "host '" + first.name + "' has another " + what + " in " + first.origin,
          expected);
}

template <class T>
void take_over(T* first, const T& later, const T& unstated, const HostEntry& entry,
               const Place& place, const char* what) {
  if (later == unstated || later == *first) return;
  if (*first != unstated) contradiction(entry, place, what);
  *first = later;
}

int sum_of_slots(const HostEntry& first, int one, int other, const Place& place) {
  const int total = one + other;
  if (total <= kMostSlotsPerHost) return total;
  mistake(place, 0, "host '" + first.name + "' has " + std::to_string(total) + " slots in all",
          "at most " + std::to_string(kMostSlotsPerHost));
}

void merge(HostEntry* first, const HostEntry& later, const Place& place) {
  if (first->max_slots || later.max_slots)
    first->max_slots = sum_of_slots(*first, first->max_slots.value_or(first->slots.value_or(1)),
                                    later.max_slots.value_or(later.slots.value_or(1)), place);
  first->slots = sum_of_slots(*first, first->slots.value_or(1), later.slots.value_or(1), place);
  take_over(&first->port, later.port, std::uint16_t{0}, *first, place, "port");
  const std::string none;
  take_over(&first->identity, later.identity, none, *first, place, "identity");
  take_over(&first->address, later.address, none, *first, place, "address");
  take_over(&first->interfaces, later.interfaces, none, *first, place, "ifname");
  take_over(&first->gpus, later.gpus, {}, *first, place, "list of GPUs");
}

}  // namespace

HostIndex::HostIndex(const HostList& list, AddressLookup look_up)
    : list_(list), look_up_(std::move(look_up)) {
  for (const HostEntry& entry : list.entries) {
    by_name_.emplace(entry.name, &entry);
    by_form_.emplace(shortest_form(entry.name), &entry);
  }
}

bool HostIndex::has_form(const std::string& name) const {
  const auto [first, last] = by_form_.equal_range(shortest_form(name));
  return std::any_of(first, last,
                     [&](const auto& each) { return is_same_host(name, each.second->name); });
}

void HostIndex::expect(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (!has_form(name)) expected_.push_back(name);
}

// The first call looks up the entries and the expected names, too.
const std::vector<std::string>& HostIndex::addresses_of(const std::string& name) {
  if (const auto known = resolved_.find(name); known != resolved_.end()) return known->second;
  std::vector<std::string> names{name};
  names.insert(names.end(), expected_.begin(), expected_.end());
  expected_.clear();
  const std::size_t entries_at = names.size();
  if (!by_address_)
    for (const HostEntry& entry : list_.entries)
      names.push_back(entry.address.empty() ? entry.name : entry.address);
  std::vector<std::vector<std::string>> addresses = look_up_(names);
  if (!by_address_) {
    by_address_.emplace();
    for (std::size_t i = 0; i < list_.entries.size(); ++i)
      for (const std::string& address : addresses.at(entries_at + i))
        by_address_->emplace(address, &list_.entries[i]);
  }
  for (std::size_t i = 0; i < entries_at; ++i) resolved_[names[i]] = std::move(addresses[i]);
  return resolved_[name];
}

const HostEntry* HostIndex::find(const std::string& user, const std::string& name,
                                 const Place& place, std::size_t column) {
  const auto has_user = [&user](const auto& each) {
    return user.empty() || each.second->user == user;
  };
  const auto [begin, end] = by_name_.equal_range(name);
  const auto found = std::find_if(begin, end, has_user);
  if (found != end) return found->second;
  const HostEntry* meant = nullptr;
  const auto consider = [&](const HostEntry* entry) {
    if (meant && meant->name != entry->name)
      mistake(place, column,
              "'" + printable(name) + "' may be " + meant->name + " (" + meant->origin + ") or " +
                  entry->name + " (" + entry->origin + ")",
              "the whole name of one of them");
    if (!meant) meant = entry;
  };
  const auto [first, last] = by_form_.equal_range(shortest_form(name));
  for (auto each = first; each != last; ++each)
    if (has_user(*each) && is_same_host(name, each->second->name)) consider(each->second);
  if (meant || !look_up_) return meant;
  for (const std::string& address : addresses_of(name)) {
    const auto [from, to] = by_address_->equal_range(address);
    for (auto each = from; each != to; ++each)
      if (has_user(*each)) consider(each->second);
  }
  return meant;
}

void HostCollector::add(HostEntry entry, const Place& place) {
  if (++mentions_ > kMostMentions)
    mistake(place, 0, "hosts are named more than " + std::to_string(kMostMentions) + " times",
            "a number of slots for each host");
  const auto key = std::pair(entry.user, lower(entry.name));
  const auto [found, is_new] = index_.emplace(key, list_.entries.size());
  if (!is_new) {
    HostEntry& first = list_.entries[found->second];
    has_bare_repeat_ = has_bare_repeat_ || (first.is_bare() && entry.is_bare());
    return merge(&first, entry, place);
  }
  if (list_.entries.size() >= kMostHosts)
    mistake(place, 0, "more than " + std::to_string(kMostHosts) + " hosts", "fewer hosts");
  list_.entries.push_back(std::move(entry));
}

HostList HostCollector::take(const Place& begin) {
  if (list_.entries.empty()) mistake(begin, 0, "no host is named", kHostForm);
  if (has_bare_repeat_)
    for (HostEntry& entry : list_.entries)
      if (entry.is_bare()) entry.slots = 1;
  return std::move(list_);
}

}  // namespace hv::launcher
