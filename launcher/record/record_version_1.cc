// SPDX-License-Identifier: Apache-2.0
#include "launcher/record/record_version_1.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

namespace hv::launcher {
namespace {

using Parsed = nlohmann::json;

struct Rename {
  const char* from;
  const char* to;
};

// Members of version 1 and their names since version 2.
constexpr Rename kRecordRenames[] = {
    {"advice", "fix"}, {"begun", "started_at"}, {"not_probed", "not_checked"}};
constexpr Rename kCauseRenames[] = {{"advice", "fix"},
                                    {"agent_gave_up", "agent_ended_job"},
                                    {"left_before", "rank_left_before"},
                                    {"lost_as", "loss_reason"},
                                    {"missed_at", "awaited_in_call"}};
constexpr Rename kFindingRenames[] = {{"mend", "fix"}, {"verdict", "id"}, {"when", "condition"}};
constexpr Rename kStackRenames[] = {{"what", "heading"}};
constexpr Rename kRankRenames[] = {
    {"ended", "ended_at"}, {"out_of_memory_by", "out_of_memory_evidence"}, {"steps", "step_times"}};
constexpr Rename kMemoryRenames[] = {{"beside_it", "same_cgroup"}, {"not_asked", "not_checked"}};

// The old names stay: the reader does not know them.
template <std::size_t N>
void rename_members(Parsed* object, const Rename (&renames)[N]) {
  if (!object->is_object()) return;
  for (const Rename& rename : renames) {
    const auto found = object->find(rename.from);
    if (found == object->end()) continue;
    Parsed value = std::move(*found);
    (*object)[rename.to] = std::move(value);
  }
}

template <std::size_t N>
void rename_in_each(Parsed* record, const char* array, const Rename (&renames)[N]) {
  const auto found = record->find(array);
  if (found == record->end() || !found->is_array()) return;
  for (Parsed& each : *found) rename_members(&each, renames);
}

void rename_memory_values(Parsed* record) {
  const auto ranks = record->find("ranks");
  if (ranks == record->end() || !ranks->is_array()) return;
  for (Parsed& rank : *ranks) {
    if (!rank.is_object()) continue;
    const auto value = rank.find("out_of_memory");
    if (value == rank.end()) continue;
    for (const Rename& rename : kMemoryRenames)
      if (*value == rename.from) *value = rename.to;
  }
}

}  // namespace

void upgrade_record_from_1(Parsed* record) {
  rename_members(record, kRecordRenames);
  if (const auto cause = record->find("cause"); cause != record->end())
    rename_members(&*cause, kCauseRenames);
  rename_in_each(record, "findings", kFindingRenames);
  rename_in_each(record, "stacks", kStackRenames);
  rename_in_each(record, "ranks", kRankRenames);
  rename_memory_values(record);
}

}  // namespace hv::launcher
