// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/gather.h"

#include <algorithm>
#include <map>

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

// Each group is held against the first ranks of those before it, of so many at most: beyond that
// many different texts nobody reads which are alike.
constexpr std::size_t kMostHeldAgainst = 64;

std::vector<GatheredText> gather_alike(
    const std::vector<std::pair<int, std::vector<std::string>>>& lines_by_rank,
    const std::vector<Speaker>& speakers) {
  std::map<int, const Speaker*> by_rank;
  for (const Speaker& speaker : speakers) by_rank[speaker.rank] = &speaker;
  const auto speaker_of = [&by_rank](const GatheredText& group) {
    const auto found = by_rank.find(group.ranks.front());
    return found == by_rank.end() ? Speaker{group.ranks.front()} : *found->second;
  };
  std::vector<GatheredText> groups;
  for (GatheredText& group : gather(lines_by_rank)) {
    const Speaker speaker = speaker_of(group);
    const auto end =
        groups.begin() + static_cast<std::ptrdiff_t>(std::min(groups.size(), kMostHeldAgainst));
    const auto found = std::find_if(groups.begin(), end, [&](const GatheredText& earlier) {
      return are_alike(earlier.lines, speaker_of(earlier), group.lines, speaker);
    });
    if (found == end) {
      groups.push_back(std::move(group));
    } else {
      found->ranks.insert(found->ranks.end(), group.ranks.begin(), group.ranks.end());
      found->is_said_by_all = false;
    }
  }
  for (GatheredText& group : groups) std::sort(group.ranks.begin(), group.ranks.end());
  return groups;
}

}  // namespace hv::launcher
