// Node expressions as Slurm writes them: "n[01-16,20],gpu[1-2]x[a]". Pure.
// SPDX-License-Identifier: Apache-2.0
//
//   expression = name { "," name }              commas outside of brackets
//   name       = { text | "[" item { "," item } "]" }
//   item       = number | number "-" number | word
// Numbers keep the width of the first of their range: 08-11 is 08, 09, 10, 11. Of several brackets
// the last one's items change first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/allocation/text_place.h"

namespace hv::launcher {

// Longer ones are no host names.
constexpr std::size_t kMostNameBytes = 253;

// The names that bytes [begin, end) of the place's text stand for, which hold no comma outside of
// brackets; without a bracket, that text itself. Throws Error(kUsage) where they are malformed, or
// more than `most`, or one of them is too long: before any is made.
std::vector<std::string> expand_name(const Place& place, std::size_t begin, std::size_t end,
                                     std::size_t most);

// The other way: an expression for these names as Slurm itself reads it, numbers at their ends that
// follow each other as ranges, in another order perhaps.
std::string fold_names(const std::vector<std::string>& names);

// An item of a bracket: numbers that follow each other, or a single one.
struct NumberRange {
  std::uint64_t first = 0, last = 0;

  // "7", "08-11": with zeros before numbers of less than `width` digits.
  std::string text(std::size_t width) const;
};
// In the order of the numbers.
std::vector<NumberRange> ranges_of(const std::set<std::uint64_t>& numbers);

// Where the next comma outside of brackets is from `begin` on, or `end`.
std::size_t find_comma(std::string_view text, std::size_t begin, std::size_t end);

}  // namespace hv::launcher
