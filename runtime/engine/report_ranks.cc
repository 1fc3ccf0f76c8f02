// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/report_ranks.h"

#include <algorithm>
#include <numeric>

namespace hv::runtime {

void leave_out_ranks(FreshReport& report, std::size_t subtree_size) {
  if (report.variants.size() != 1) return;
  Variant& variant = report.variants.front();
  if (variant.ranks.size() != subtree_size) return;
  if (!variant.first_extents.empty()) {
    std::vector<std::size_t> order(subtree_size);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return variant.ranks[a] < variant.ranks[b]; });
    std::vector<std::int64_t> extents;
    for (const std::size_t i : order) extents.push_back(variant.first_extents[i]);
    variant.first_extents = std::move(extents);
  }
  variant.ranks.clear();
}

void spell_out_ranks(Report& report, const std::vector<int>& subtree) {
  for (FreshReport& fresh : report.fresh) {
    if (fresh.variants.size() == 1 && fresh.variants.front().ranks.empty())
      fresh.variants.front().ranks.assign(subtree.begin(), subtree.end());
  }
}

}  // namespace hv::runtime
