// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/tensor_groups.h"

#include <algorithm>
#include <iterator>

#include "src/base/text.h"

namespace hv::runtime {
namespace {

constexpr std::size_t kMostNamesTold = 8;
// Broken groups whose rest is still awaited; of older ones it waits as a group of its own.
constexpr std::size_t kMostBroken = 1000;
constexpr std::size_t kFixedBytes = 64;  // of a tensor in a message, generously

std::string quoted(const std::string& name) { return "'" + printable(name) + "'"; }

}  // namespace

void TensorGroups::add(ReadyTensor tensor, TimePoint time) {
  const std::uint64_t number = tensor.description.group;
  if (number == 0) {
    whole_.push_back(std::move(tensor));
    return;
  }
  if (is_of_broken(tensor.name, number))
    return refuse_tensor(tensor.name, number, broken_.at(number).why);
  const std::uint32_t size = tensor.description.group_size;
  Group& group = groups_.try_emplace(number, Group{time, size, {}}).first->second;
  const bool agrees = group.size == size;
  Status why{StatusCode::kMismatch, "tensor " + quoted(tensor.name) + " says that it has " +
                                        std::to_string(size) + " tensors, others that it has " +
                                        std::to_string(group.size)};
  group.ready.push_back(std::move(tensor));
  if (!agrees) return refuse_group(number, why);
  if (group.ready.size() < size) return;
  std::move(group.ready.begin(), group.ready.end(), std::back_inserter(whole_));
  groups_.erase(number);
}

void TensorGroups::refuse(const std::string& name, const TensorDescription& description,
                          const Status& verdict) {
  if (description.group == 0) return;
  if (!is_of_broken(name, description.group)) note_broken(name, description, verdict);
  refuse_group(description.group, verdict);
}

// True, and the tensor is counted: it is one of those that a refusal took with it. A name that was
// counted before belongs to the next group of that number.
bool TensorGroups::is_of_broken(const std::string& name, std::uint64_t group) {
  const auto found = broken_.find(group);
  if (found == broken_.end()) return false;
  const bool is_new = found->second.seen.insert(name).second;
  if (!is_new || found->second.seen.size() > found->second.size) {
    broken_.erase(found);
    return false;
  }
  return true;
}

void TensorGroups::note_broken(const std::string& name, const TensorDescription& description,
                               const Status& why) {
  Broken& broken = broken_[description.group];
  broken = {description.group_size, {name}, why};
  const auto waiting = groups_.find(description.group);
  if (waiting != groups_.end())
    for (const ReadyTensor& tensor : waiting->second.ready) broken.seen.insert(tensor.name);
  broken_order_.push_back(description.group);
  if (broken_order_.size() <= kMostBroken) return;
  broken_.erase(broken_order_.front());
  broken_order_.pop_front();
}

void TensorGroups::refuse_group(std::uint64_t number, const Status& why) {
  const auto found = groups_.find(number);
  if (found == groups_.end()) return;
  for (const ReadyTensor& tensor : found->second.ready) refuse_tensor(tensor.name, number, why);
  groups_.erase(found);
}

void TensorGroups::refuse_tensor(const std::string& name, std::uint64_t group, const Status& why) {
  refusals_.push_back({name, static_cast<std::uint32_t>(why.code),
                       "tensor " + quoted(name) + ": its group " + std::to_string(group) +
                           " fails as one: " + why.message});
}

void TensorGroups::refuse_incomplete() {
  const Status why{StatusCode::kMismatch, "it was not whole when all ranks had joined"};
  while (!groups_.empty()) refuse_group(groups_.begin()->first, why);
  broken_.clear();
  broken_order_.clear();
}

std::vector<ReadyTensor> TensorGroups::take_whole(std::size_t most_bytes) {
  std::vector<ReadyTensor> taken;
  for (std::size_t bytes = 0; !whole_.empty(); whole_.pop_front()) {
    const ReadyTensor& next = whole_.front();
    bytes +=
        kFixedBytes + (next.number != 0 ? 0
                                        : next.name.size() + 8 * next.fresh.first_extents.size() +
                                              8 * next.description.shape.size());
    if (bytes > most_bytes && !taken.empty()) break;
    taken.push_back(std::move(whole_.front()));
  }
  return taken;
}

std::vector<Refusal> TensorGroups::take_refusals(std::size_t most_bytes) {
  std::vector<Refusal> taken;
  for (std::size_t bytes = 0; !refusals_.empty(); refusals_.pop_front()) {
    bytes += kFixedBytes + refusals_.front().name.size() + refusals_.front().words.size();
    if (bytes > most_bytes && !taken.empty()) break;
    taken.push_back(std::move(refusals_.front()));
  }
  return taken;
}

void TensorGroups::spell_out(const std::vector<ResponseCache::Entry>& evicted) {
  if (groups_.empty()) return;
  for (const ResponseCache::Entry& entry : evicted) {
    const auto group = groups_.find(entry.description.group);
    if (group == groups_.end()) continue;
    for (ReadyTensor& tensor : group->second.ready) {
      if (tensor.number != entry.number) continue;
      tensor.number = 0;
      tensor.fresh = {entry.name, entry.first_extents};
    }
  }
}

std::vector<TensorGroups::Incomplete> TensorGroups::waiting() const {
  std::vector<Incomplete> result;
  for (const auto& [number, group] : groups_) {
    Incomplete& one = result.emplace_back(Incomplete{number, group.size, group.since, {}});
    for (const ReadyTensor& tensor : group.ready) one.there.push_back(tensor.name);
  }
  return result;
}

std::string stall_words(const TensorGroups::Incomplete& group, TimePoint time) {
  std::vector<std::string> names;
  for (const std::string& name : group.there) {
    if (names.size() == kMostNamesTold) {
      names.push_back("...");
      break;
    }
    names.push_back(quoted(name));
  }
  return "group " + std::to_string(group.group) + " has waited " +
         format_duration(time - group.since) + ": " + std::to_string(group.there.size()) +
         " of its " + std::to_string(group.size) + " tensors are ready on all ranks (" +
         join(names, ", ") +
         "), the others are not. A group travels when it is whole: has every rank enqueued all of "
         "it?";
}

std::vector<GroupOutcomes::Outcome> GroupOutcomes::add(Outcome outcome) {
  const TensorDescription description = outcome.first->description;
  if (description.group == 0) return {std::move(outcome)};
  const auto place = groups_.try_emplace(description.group).first;
  std::vector<Outcome>& outcomes = place->second;
  outcomes.push_back(std::move(outcome));
  if (outcomes.size() < description.group_size) return {};
  const auto failed = std::find_if(outcomes.begin(), outcomes.end(),
                                   [](const Outcome& one) { return !one.second.ok(); });
  if (failed != outcomes.end()) {
    const Status reason = failed->second;
    for (Outcome& one : outcomes)
      if (one.second.ok())
        one.second = {reason.code, "tensor " + quoted(one.first->name) + ": its group " +
                                       std::to_string(description.group) +
                                       " fails as one: " + reason.message};
  }
  std::vector<Outcome> all = std::move(outcomes);
  groups_.erase(place);
  return all;
}

}  // namespace hv::runtime
