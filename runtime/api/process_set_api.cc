// The functions of hvrun.h on process sets.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "runtime/api/context_registry.h"
#include "runtime/api/last_error.h"
#include "runtime/include/hvrun/hvrun.h"

namespace hv::runtime {
namespace {

Status malformed_set(const char* function, const char* what) {
  return {StatusCode::kArgument, std::string(function) + ": " + what};
}

Status find(hvrun_context* context, std::shared_ptr<Context>* found) {
  return ContextRegistry::instance().find(context, found);
}

Status add(hvrun_context* context, const int32_t* ranks, int32_t count, uint32_t* set) {
  if (set == nullptr) return malformed_set("hvrun_process_set_add", "set is NULL");
  if (count < 0 || (count > 0 && ranks == nullptr))
    return malformed_set("hvrun_process_set_add", "ranks is NULL, or count negative");
  std::shared_ptr<Context> found;
  if (Status status = find(context, &found); !status.ok()) return status;
  return found->add_process_set({ranks, ranks + count}, set);
}

Status remove(hvrun_context* context, uint32_t set) {
  std::shared_ptr<Context> found;
  if (Status status = find(context, &found); !status.ok()) return status;
  return found->remove_process_set(set);
}

// As many of them as there is room for.
template <class Number>
Status hand_over(const char* function, const std::vector<Number>& numbers, Number* room,
                 int32_t capacity, int32_t* count) {
  if (count == nullptr) return malformed_set(function, "count is NULL");
  if (capacity < 0 || (capacity > 0 && room == nullptr))
    return malformed_set(function, "there is no room of that capacity");
  *count = static_cast<int32_t>(numbers.size());
  std::copy_n(numbers.begin(),
              std::min<std::size_t>(numbers.size(), static_cast<std::size_t>(capacity)), room);
  return Status::success();
}

Status list(hvrun_context* context, uint32_t* sets, int32_t capacity, int32_t* count) {
  std::shared_ptr<Context> found;
  if (Status status = find(context, &found); !status.ok()) return status;
  std::vector<uint32_t> numbers;
  for (const ProcessSet& set : found->process_sets()) numbers.push_back(set.number);
  return hand_over("hvrun_process_set_list", numbers, sets, capacity, count);
}

Status ranks(hvrun_context* context, uint32_t set, int32_t* room, int32_t capacity,
             int32_t* count) {
  std::shared_ptr<Context> found;
  if (Status status = find(context, &found); !status.ok()) return status;
  for (const ProcessSet& one : found->process_sets()) {
    if (one.number != set) continue;
    const std::vector<int32_t> members(one.members().begin(), one.members().end());
    return hand_over("hvrun_process_set_ranks", members, room, capacity, count);
  }
  return {StatusCode::kArgument,
          "hvrun_process_set_ranks: there is no process set " + std::to_string(set)};
}

}  // namespace
}  // namespace hv::runtime

namespace api = hv::runtime;

hvrun_status hvrun_process_set_add(hvrun_context* context, const int32_t* ranks, int32_t count,
                                   uint32_t* set) {
  return api::guarded([&] { return api::add(context, ranks, count, set); });
}

hvrun_status hvrun_process_set_remove(hvrun_context* context, uint32_t set) {
  return api::guarded([&] { return api::remove(context, set); });
}

hvrun_status hvrun_process_set_list(hvrun_context* context, uint32_t* sets, int32_t capacity,
                                    int32_t* count) {
  return api::guarded([&] { return api::list(context, sets, capacity, count); });
}

hvrun_status hvrun_process_set_ranks(hvrun_context* context, uint32_t set, int32_t* ranks,
                                     int32_t capacity, int32_t* count) {
  return api::guarded([&] { return api::ranks(context, set, ranks, capacity, count); });
}
