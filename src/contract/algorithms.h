// Which algorithm carries out a collective: the table made by measurement, and what HVRUN_ALGORITHM
// changes in it.
// SPDX-License-Identifier: Apache-2.0
//
// Part of the contract: ranks choose by it (rank 0's HVRUN_ALGORITHM counts for all), and
// `hvrun env --algorithms` prints it. Everything here is a pure function of what is equal on all
// ranks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hv {

// In which order the ranks' values are folded.
enum class FoldOrder {
  kNone,   // nothing is folded
  kRank,   // within each host by rank, then over hosts: the same bits whichever of these it is
  kTree,   // over a fixed tree of hosts, rounded to the type at each: the same for all of these
  kPairs,  // by pairs of ranks, a tensor by itself
  kPlace,  // depends on where an element lies, and so on fusion
};

// Where the members of a job or a set lie.
struct JobExtent {
  int ranks = 1;
  int hosts = 1;
};

struct AlgorithmRow {
  // "allreduce", ...; "cross": what an allreduce does between hosts.
  std::string_view collective;
  std::string_view name;
  std::string_view where;  // in words
  JobExtent least, most;
  std::int64_t up_to_bytes;  // of the tensors, cross: of a lane's share; -1: only when asked for
  FoldOrder order;
};
// The first row of a collective that fits is taken.
const std::vector<AlgorithmRow>& algorithm_table();

// One word of HVRUN_ALGORITHM: COLLECTIVE:NAME or COLLECTIVE:NAME@BYTES.
struct AlgorithmWish {
  std::string collective, name;
  std::int64_t up_to_bytes = INT64_MAX;
};
// Comma-separated words; "" is none. Throws Error(kUsage) with the words that are understood. At
// most 64 words.
std::vector<AlgorithmWish> parse_algorithms(const std::string& text);
// Empty, or in words which wish can never come true in a job of that extent.
std::string impossible_wish(const std::vector<AlgorithmWish>& wishes, const JobExtent& job,
                            bool deterministic);

// What is to be carried out.
struct AlgorithmQuestion {
  std::string_view collective;
  JobExtent extent;
  std::int64_t bytes = 0;
  bool deterministic = false;
  bool narrow_floats = false;  // of 16 or 8 bits travel, which a tree rounds at each of its hosts
};
// The first wish that fits, else the table's choice. A wish that does not fit (a set on one host in
// a job on several, say) is passed over. The table offers trees of hosts neither to what is
// deterministic nor to floats of 16 or 8 bits.
const AlgorithmRow& choose_algorithm(const std::vector<AlgorithmWish>& wishes,
                                     const AlgorithmQuestion& question);

// For `hvrun env --algorithms`.
std::string algorithms_text(const std::vector<AlgorithmWish>& wishes);

}  // namespace hv
