// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/first_sets.h"

#include <string>
#include <utility>

namespace hv::runtime {
namespace {

Status of_set(std::size_t index, Status status) {
  status.message = "hvrun_init: process_sets[" + std::to_string(index) + "]: " + status.message;
  return status;
}

}  // namespace

Status check_first_sets(const hvrun_options& options) {
  if (options.process_sets == nullptr && options.process_set_count > 0)
    return {StatusCode::kArgument,
            "hvrun_init: process_sets is NULL, and process_set_count is not 0"};
  for (std::size_t i = 0; i < options.process_set_count; ++i) {
    const hvrun_rank_list& list = options.process_sets[i];
    if (list.ranks == nullptr && list.count > 0)
      return of_set(i, {StatusCode::kArgument, "ranks is NULL, and count is not 0"});
  }
  return Status::success();
}

Status add_first_sets(const hvrun_options& options, Context& context) {
  for (std::size_t i = 0; i < options.process_set_count; ++i) {
    const hvrun_rank_list& list = options.process_sets[i];
    std::uint32_t number = 0;
    Status status = context.add_process_set({list.ranks, list.ranks + list.count}, &number);
    if (!status.ok()) return of_set(i, std::move(status));
  }
  return Status::success();
}

}  // namespace hv::runtime
