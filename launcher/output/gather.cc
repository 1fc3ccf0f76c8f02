// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/gather.h"

#include <algorithm>
#include <map>

#include "src/base/text.h"

namespace hv::launcher {

std::vector<GatheredText> gather(
    const std::vector<std::pair<int, std::vector<std::string>>>& lines_by_rank) {
  std::map<std::vector<std::string>, std::vector<int>> ranks_by_text;
  for (const auto& [rank, lines] : lines_by_rank) {
    if (!lines.empty()) ranks_by_text[lines].push_back(rank);
  }
  std::vector<GatheredText> groups;
  for (auto& [lines, ranks] : ranks_by_text) {
    std::sort(ranks.begin(), ranks.end());
    groups.push_back({std::move(ranks), lines});
  }
  std::sort(groups.begin(), groups.end(), [](const GatheredText& a, const GatheredText& b) {
    return a.ranks.front() < b.ranks.front();
  });
  return groups;
}

std::string rank_words(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + format_ranges(ranks);
}

}  // namespace hv::launcher
