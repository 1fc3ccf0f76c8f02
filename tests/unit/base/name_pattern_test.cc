// Tests of src/base/name_pattern.
// SPDX-License-Identifier: Apache-2.0
#include "src/base/name_pattern.h"

#include <doctest/doctest.h>

#include <algorithm>

using PatternList = std::vector<std::string>;

namespace {

bool matches_pattern(std::string_view name, std::string_view pattern) {
  if (pattern.empty() || pattern.back() != '*') return name == pattern;
  pattern.remove_suffix(1);
  return name.substr(0, pattern.size()) == pattern;
}

}  // namespace

TEST_CASE("many patterns match what one of them alone matches") {
  const std::vector<PatternList> lists{{},
                                       {""},
                                       {"*"},
                                       {"A"},
                                       {"A*"},
                                       {"A", "AB*", "B"},
                                       {"A_*", "A_B*", "A_B_C*", "B"},
                                       {"AB*", "A*", "B_*", "C"},
                                       {"SLURM_STEP_*", "SLURM_STEPID", "SLURM_S*", "SLURMD_*"}};
  const std::vector<std::string> names{
      "",         "A",           "AA",           "AB",           "ABC",
      "A_",       "A_A",         "A_B",          "A_B_CD",       "A_C",
      "B",        "BA",          "B_",           "B_A",          "C",
      "CC",       "SLURM_STEP_", "SLURM_STEPID", "SLURM_STEPIX", "SLURM_T",
      "SLURM",    "*",           "A*",           "\xff",         "SLURM_R",
      "SLURMD_X", "SLURMD"};
  for (const PatternList& list : lists) {
    const hv::NamePatterns patterns(list);
    for (const std::string& name : names) {
      CAPTURE(name);
      CAPTURE(list.size());
      const bool expected = std::any_of(list.begin(), list.end(), [&](const std::string& pattern) {
        return matches_pattern(name, pattern);
      });
      CHECK(patterns.has_match(name) == expected);
    }
  }
}
