// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/process_set_table.h"

#include <algorithm>
#include <numeric>

#include "src/base/text.h"

namespace hv::runtime {
namespace {

// The lowest that is free, which is taken; -1: none is.
int take_free(std::vector<bool>* used) {
  const auto free = std::find(used->begin(), used->end(), false);
  if (free == used->end()) return -1;
  *free = true;
  return static_cast<int>(free - used->begin());
}

Status refusal(const std::vector<int>& members, const std::string& why) {
  return {StatusCode::kArgument,
          "add a process set of " + std::to_string(members.size()) + " ranks: " + why};
}

}  // namespace

ProcessSetTable::ProcessSetTable(int ranks, int most_sets, int most_cells)
    : ranks_(ranks),
      most_sets_(most_sets),
      most_cells_(most_cells),
      used_lanes_(static_cast<std::size_t>(most_sets)) {
  ProcessSet all;
  all.number = next_number_++;
  all.place.lanes = take_free(&used_lanes_);
  all.place.members.resize(static_cast<std::size_t>(ranks));
  std::iota(all.place.members.begin(), all.place.members.end(), 0);
  sets_.emplace(all.number, std::move(all));
}

std::vector<bool>& ProcessSetTable::cells_of(int rank) {
  const auto [found, is_new] = used_cells_.try_emplace(rank, static_cast<std::size_t>(most_cells_));
  if (is_new) found->second[0] = true;
  return found->second;
}

Status ProcessSetTable::check(const std::vector<int>& sorted) const {
  if (sorted.empty()) return refusal(sorted, "it needs at least one");
  for (const int end : {sorted.front(), sorted.back()}) {
    if (end < 0 || end >= ranks_)
      return refusal(sorted, "rank " + std::to_string(end) + " is not among the job's " +
                                 std::to_string(ranks_));
  }
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    return refusal(sorted, "rank " + std::to_string(*twice) + " is named twice");
  for (const auto& [number, set] : sets_) {
    if (set.members() == sorted)
      return refusal(sorted, "set " + std::to_string(number) + " has the same; use that");
  }
  if (sets_.size() == static_cast<std::size_t>(most_sets_))
    return refusal(sorted, "there are " + std::to_string(most_sets_) +
                               " already, which is the most; remove one");
  for (const int rank : sorted) {
    const auto used = used_cells_.find(rank);
    const bool is_full =
        used == used_cells_.end()
            ? most_cells_ == 1
            : std::all_of(used->second.begin(), used->second.end(), [](bool is) { return is; });
    if (is_full)
      return refusal(sorted, "rank " + std::to_string(rank) + " is in " +
                                 std::to_string(most_cells_) +
                                 " sets already, which is the most; remove one of those");
  }
  return Status::success();
}

Status ProcessSetTable::add(std::vector<int> members, const ProcessSet** added) {
  std::sort(members.begin(), members.end());
  if (Status status = check(members); !status.ok()) return status;
  ProcessSet set;
  set.number = next_number_++;
  set.place.lanes = take_free(&used_lanes_);
  for (const int rank : members) set.place.cells.push_back(take_free(&cells_of(rank)));
  set.place.members = std::move(members);
  *added = &sets_.emplace(set.number, std::move(set)).first->second;
  return Status::success();
}

Status ProcessSetTable::remove(std::uint32_t number) {
  const auto found = sets_.find(number);
  if (found == sets_.end() || number == 0)
    return {StatusCode::kArgument,
            "remove process set " + std::to_string(number) +
                (number == 0 ? ": it is that of all ranks, which lives as long as the job"
                             : ": there is none of that number (any more)")};
  const SetPlacement& place = found->second.place;
  used_lanes_[static_cast<std::size_t>(place.lanes)] = false;
  for (std::size_t i = 0; i < place.members.size(); ++i)
    cells_of(place.members[i])[static_cast<std::size_t>(place.cells[i])] = false;
  sets_.erase(found);
  return Status::success();
}

const ProcessSet* ProcessSetTable::find(std::uint32_t number) const {
  const auto found = sets_.find(number);
  return found == sets_.end() ? nullptr : &found->second;
}

}  // namespace hv::runtime
