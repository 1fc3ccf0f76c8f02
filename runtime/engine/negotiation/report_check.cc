// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/report_check.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace hv::runtime {
namespace {

bool are_of(const std::vector<std::uint32_t>& ranks, const std::vector<int>& subtree) {
  return std::all_of(ranks.begin(), ranks.end(), [&](std::uint32_t rank) {
    return rank <= INT32_MAX &&
           std::binary_search(subtree.begin(), subtree.end(), static_cast<int>(rank));
  });
}

// A tensor is reported once every rank of the sender's subtree has it or has joined: each that has
// it stands in one variant, once, and nobody else does.
bool is_valid(const FreshReport& report, const std::vector<int>& subtree, const JoinedRanks& joined,
              const std::vector<std::uint32_t>& newly_joined) {
  std::vector<std::uint32_t> speakers;
  for (const Variant& variant : report.variants) {
    const bool varies = has_own_extents(variant.description.kind);
    if (!variant.description.is_valid() ||
        variant.first_extents.size() != (varies ? variant.ranks.size() : 0)) {
      return false;
    }
    for (const std::int64_t extent : variant.first_extents) {
      if (extent < 0) return false;
    }
    if (variant.ranks.empty() || speakers.size() + variant.ranks.size() > subtree.size())
      return false;
    speakers.insert(speakers.end(), variant.ranks.begin(), variant.ranks.end());
  }
  std::sort(speakers.begin(), speakers.end());
  if (speakers.empty() || !are_of(speakers, subtree) ||
      std::adjacent_find(speakers.begin(), speakers.end()) != speakers.end())
    return false;
  if (speakers.size() == subtree.size()) return true;
  return std::all_of(subtree.begin(), subtree.end(), [&](int rank) {
    const auto number = static_cast<std::uint32_t>(rank);
    return std::binary_search(speakers.begin(), speakers.end(), number) || joined.has(number) ||
           std::binary_search(newly_joined.begin(), newly_joined.end(), number);
  });
}

}  // namespace

bool is_valid(const Report& report, const std::vector<int>& subtree, const JoinedRanks& joined) {
  if (report.leaving.size() > subtree.size() || !are_of(report.leaving, subtree)) return false;
  if (report.joined.size() > subtree.size() || !are_of(report.joined, subtree)) return false;
  if (report.latest.waited_us > 0 && !are_of({report.latest.rank}, subtree)) return false;
  std::vector<std::uint32_t> newly_joined = report.joined;
  std::sort(newly_joined.begin(), newly_joined.end());
  return std::all_of(report.fresh.begin(), report.fresh.end(),
                     [&](const FreshReport& fresh) {
                       return is_valid(fresh, subtree, joined, newly_joined);
                     }) &&
         std::all_of(report.partial.begin(), report.partial.end(),
                     [&](const PartialReport& partial) {
                       return partial.missing.size() <= subtree.size() &&
                              partial.silent.size() <= subtree.size() &&
                              are_of(partial.missing, subtree) && are_of(partial.silent, subtree);
                     });
}

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
