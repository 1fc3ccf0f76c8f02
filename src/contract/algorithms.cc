// SPDX-License-Identifier: Apache-2.0
#include "src/contract/algorithms.h"

#include <algorithm>
#include <climits>
#include <map>

#include "src/base/check.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv {
namespace {

constexpr std::int64_t kAnySize = INT64_MAX;
constexpr std::int64_t kOnRequest = -1;
constexpr std::size_t kMostWishes = 64;
constexpr std::size_t kMostLetters = 4096;

constexpr JobExtent kLeastExtent{1, 1}, kMostExtent{INT_MAX, INT_MAX};
constexpr JobExtent kPair{2, 1}, kOneHost{INT_MAX, 1}, kTwoHosts{2, 2};

bool fits(const AlgorithmRow& row, const JobExtent& extent) {
  return extent.ranks >= row.least.ranks && extent.hosts >= row.least.hosts &&
         extent.ranks <= row.most.ranks && extent.hosts <= row.most.hosts;
}

// A tree's bits do not depend on fusion as long as the tree is taken at every size.
bool keeps_bits(const AlgorithmRow& row, std::int64_t wished_up_to) {
  if (row.order == FoldOrder::kTree) return wished_up_to == kAnySize;
  return row.order != FoldOrder::kPlace;
}

// Whether the table, unasked, may choose that row for it.
bool suits(const AlgorithmRow& row, const AlgorithmQuestion& question) {
  return row.order != FoldOrder::kTree || !(question.deterministic || question.narrow_floats);
}

bool is_row_of(const AlgorithmRow& row, const AlgorithmWish& wish) {
  return row.collective == wish.collective && row.name == wish.name;
}

std::string wish_text(const AlgorithmWish& wish) {
  std::string text = wish.collective + ":" + wish.name;
  if (wish.up_to_bytes != kAnySize) text += "@" + std::to_string(wish.up_to_bytes);
  return text;
}

std::string word_of(const AlgorithmRow& row) {
  return std::string(row.collective) + ":" + std::string(row.name);
}

// "allreduce:direct, allreduce:shares, ...": each once.
std::string known_words() {
  std::vector<std::string> words;
  for (const AlgorithmRow& row : algorithm_table()) {
    std::string word = word_of(row);
    if (std::find(words.begin(), words.end(), word) == words.end())
      words.push_back(std::move(word));
  }
  return join(words, ", ");
}

// ", did you mean cross:ring?": of that name for another collective, or spelt nearly so.
std::string guess_text(const AlgorithmWish& wish) {
  std::vector<std::string> words;
  for (const AlgorithmRow& row : algorithm_table()) {
    words.push_back(word_of(row));
    if (row.name == wish.name) return ", did you mean " + words.back() + "?";
  }
  const auto guess = nearest(wish.collective + ":" + wish.name, words);
  return guess ? ", did you mean " + *guess + "?" : "";
}

AlgorithmWish parse_wish(const std::string& word) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::kUsage, "HVRUN_ALGORITHM: '" + printable(word) + "' " + why,
                "one or more of COLLECTIVE:NAME or COLLECTIVE:NAME@BYTES (up to that size), with "
                "commas between: " +
                    known_words());
  };
  AlgorithmWish wish;
  const std::size_t colon = word.find(':');
  if (colon == std::string::npos) refuse("is not COLLECTIVE:NAME");
  wish.collective = word.substr(0, colon);
  const std::size_t at = word.find('@', colon);
  wish.name = word.substr(colon + 1, at == std::string::npos ? at : at - colon - 1);
  if (at != std::string::npos) {
    const auto bytes = parse_bytes(word.substr(at + 1));
    if (!bytes || *bytes < 0) refuse("has no number of bytes such as 65536 or 64K after the @");
    wish.up_to_bytes = *bytes;
  }
  const auto& table = algorithm_table();
  if (std::none_of(table.begin(), table.end(),
                   [&](const AlgorithmRow& row) { return is_row_of(row, wish); }))
    refuse("names no algorithm" + guess_text(wish));
  return wish;
}

}  // namespace

// A row's limit is where the next one of its collective wins, as docs/algorithms.md tells it was
// measured (bench/algorithms.py).
const std::vector<AlgorithmRow>& algorithm_table() {
  static const std::vector<AlgorithmRow> table = {
      {"allreduce", "alone", "one rank", kLeastExtent, {1, 1}, kAnySize, FoldOrder::kRank},
      {"allreduce", "direct", "two ranks on one host", kPair, {2, 1}, 1 << 20, FoldOrder::kRank},
      {"allreduce", "direct", "one host", kPair, kOneHost, 16 << 10, FoldOrder::kRank},
      {"allreduce", "shares", "one host", kPair, kOneHost, 1 << 20, FoldOrder::kRank},
      {"allreduce", "inplace", "one host", kPair, kOneHost, kAnySize, FoldOrder::kRank},
      {"allreduce", "hierarchical", "several hosts", kTwoHosts, kMostExtent, 32 << 10,
       FoldOrder::kRank},
      {"allreduce", "torus", "several hosts", kTwoHosts, kMostExtent, kAnySize, FoldOrder::kRank},
      {"cross", "exchange", "two hosts", kTwoHosts, {INT_MAX, 2}, kAnySize, FoldOrder::kRank},
      {"cross", "exchange", "3 or 4 hosts", kTwoHosts, {INT_MAX, 4}, 16 << 10, FoldOrder::kRank},
      {"cross", "doubling", "5 to 16 hosts *", {5, 5}, {INT_MAX, 16}, 16 << 10, FoldOrder::kTree},
      {"cross", "doubling", "more hosts *", {17, 17}, kMostExtent, 64 << 10, FoldOrder::kTree},
      {"cross", "halving", "65 hosts or more *", {65, 65}, kMostExtent, kAnySize, FoldOrder::kTree},
      {"cross", "exchange", "several hosts", kTwoHosts, kMostExtent, 4 << 10, FoldOrder::kRank},
      {"cross", "scatter", "several hosts", kTwoHosts, kMostExtent, kAnySize, FoldOrder::kRank},
      {"cross", "ring", "several hosts", kTwoHosts, kMostExtent, kOnRequest, FoldOrder::kPlace},
      {"cross", "halving", "several hosts", kTwoHosts, kMostExtent, kOnRequest, FoldOrder::kTree},
      {"cross", "doubling", "several hosts", kTwoHosts, kMostExtent, kOnRequest, FoldOrder::kTree},
      {"cross", "tree", "several hosts", kTwoHosts, kMostExtent, kOnRequest, FoldOrder::kTree},
      {"compressed", "shares", "one host", kLeastExtent, kOneHost, kAnySize, FoldOrder::kRank},
      {"compressed", "torus", "several hosts", kTwoHosts, kMostExtent, kAnySize, FoldOrder::kRank},
      {"adasum", "pairs", "always", kLeastExtent, kMostExtent, kAnySize, FoldOrder::kPairs},
      {"sparseallreduce", "gather", "always", kLeastExtent, kMostExtent, kAnySize,
       FoldOrder::kNone},
      {"allgather", "pieces", "always", kLeastExtent, kMostExtent, kAnySize, FoldOrder::kNone},
      {"broadcast", "tree", "one host", kLeastExtent, kOneHost, kAnySize, FoldOrder::kNone},
      {"broadcast", "tree", "up to 8 hosts", kTwoHosts, {INT_MAX, 8}, 512 << 10, FoldOrder::kNone},
      {"broadcast", "tree", "9 to 64 hosts", {9, 9}, {INT_MAX, 64}, 4 << 20, FoldOrder::kNone},
      {"broadcast", "tree", "more hosts", {65, 65}, kMostExtent, 64 << 20, FoldOrder::kNone},
      {"broadcast", "chain", "several hosts", kTwoHosts, kMostExtent, kAnySize, FoldOrder::kNone},
      {"reducescatter", "pieces", "always", kLeastExtent, kMostExtent, kAnySize, FoldOrder::kRank},
      {"alltoall", "streams", "always", kLeastExtent, kMostExtent, kAnySize, FoldOrder::kNone},
      {"barrier", "byte", "always", kLeastExtent, kMostExtent, kAnySize, FoldOrder::kNone},
  };
  return table;
}

std::vector<AlgorithmWish> parse_algorithms(const std::string& text) {
  std::vector<AlgorithmWish> wishes;
  if (text.empty()) return wishes;
  if (text.size() > kMostLetters)
    throw Error(ErrorKind::kUsage, "HVRUN_ALGORITHM has more than 4096 letters",
                "name fewer algorithms");
  for (const std::string& word : split(text, ',')) wishes.push_back(parse_wish(word));
  if (wishes.size() > kMostWishes)
    throw Error(ErrorKind::kUsage, "HVRUN_ALGORITHM has more than 64 words",
                "name fewer algorithms");
  return wishes;
}

std::string impossible_wish(const std::vector<AlgorithmWish>& wishes, const JobExtent& job,
                            bool deterministic) {
  std::map<std::string, FoldOrder> orders;  // of those asked for before, by collective
  for (const AlgorithmWish& wish : wishes) {
    const AlgorithmRow* known = nullptr;
    bool has_place = false;
    for (const AlgorithmRow& row : algorithm_table()) {
      if (!is_row_of(row, wish)) continue;
      known = &row;
      has_place = has_place || fits(row, job);
    }
    if (known == nullptr)
      return "HVRUN_ALGORITHM=" + wish_text(wish) + " names no algorithm of this libhvrun";
    if (!has_place)
      return "HVRUN_ALGORITHM=" + wish_text(wish) + " works for " + std::string(known->where) +
             "; this job has " + count_of(job.ranks, "rank") + " on " +
             count_of(job.hosts, "host") + "; try: one that 'hvrun env --algorithms' lists for it";
    if (deterministic && !keeps_bits(*known, wish.up_to_bytes))
      return "HVRUN_ALGORITHM=" + wish_text(wish) +
             " makes bits depend on what is fused, which HVRUN_DETERMINISTIC=1 excludes" +
             (known->order == FoldOrder::kTree ? ": take it for all sizes, without @BYTES" : "");
    const auto [earlier, is_first] = orders.emplace(wish.collective, known->order);
    if (deterministic && !is_first && earlier->second != known->order)
      return "HVRUN_ALGORITHM=" + wish_text(wish) +
             " folds in another order than what is taken before it, so that bits would depend on "
             "what is fused, which HVRUN_DETERMINISTIC=1 excludes: ask for one of them";
  }
  return {};
}

const AlgorithmRow& choose_algorithm(const std::vector<AlgorithmWish>& wishes,
                                     const AlgorithmQuestion& question) {
  const auto& table = algorithm_table();
  const auto answers = [&](const AlgorithmRow& row) {
    return row.collective == question.collective && fits(row, question.extent);
  };
  for (const AlgorithmWish& wish : wishes) {
    if (question.bytes > wish.up_to_bytes) continue;
    for (const AlgorithmRow& row : table)
      if (is_row_of(row, wish) && answers(row) &&
          (!question.deterministic || keeps_bits(row, wish.up_to_bytes)))
        return row;
  }
  for (const AlgorithmRow& row : table)
    if (answers(row) && question.bytes <= row.up_to_bytes && suits(row, question)) return row;
  HV_CHECK(false, "every collective has an algorithm for every job");
}

std::string algorithms_text(const std::vector<AlgorithmWish>& wishes) {
  std::vector<std::vector<std::string>> lines{{"COLLECTIVE", "ALGORITHM", "WHERE", "UP TO"}};
  for (const AlgorithmWish& wish : wishes) {
    const bool is_any = wish.up_to_bytes == kAnySize;
    lines.push_back(
        {wish.collective, wish.name, "HVRUN_ALGORITHM",
         is_any ? "any size" : format_bytes(static_cast<std::uint64_t>(wish.up_to_bytes))});
  }
  for (const AlgorithmRow& row : algorithm_table())
    lines.push_back({std::string(row.collective), std::string(row.name), std::string(row.where),
                     row.up_to_bytes == kOnRequest ? "only by HVRUN_ALGORITHM"
                     : row.up_to_bytes == kAnySize
                         ? "any size"
                         : format_bytes(static_cast<std::uint64_t>(row.up_to_bytes))});
  std::size_t widths[3] = {};
  for (const auto& line : lines)
    for (std::size_t i = 0; i < 3; ++i) widths[i] = std::max(widths[i], line[i].size());
  std::string text;
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < 3; ++i)
      text += line[i] + std::string(widths[i] + 2 - line[i].size(), ' ');
    text += line[3] + "\n";
  }
  return text +
         "\nThe first line that fits a collective is taken. cross: what an allreduce does between "
         "hosts, by the bytes of a lane's share.\n"
         "* Not of 16-bit or 8-bit floats or compressed, nor with HVRUN_DETERMINISTIC=1, unless "
         "asked for.\n"
         "inplace: in memory from hvrun_alloc; else the way of direct or shares is taken.\n"
         "Limits for more than four hosts are reckoned, as docs/algorithms.md says.\n";
}

}  // namespace hv
