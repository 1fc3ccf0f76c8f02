// UnstartedRanks: why ranks have no program, as the first words of their stderr tell it. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/mpi/mpirun.h"

namespace hv::launcher {

class UnstartedRanks {
 public:
  explicit UnstartedRanks(const Mpirun& mpirun) : mpirun_(mpirun) {}

  // Of a rank's stderr, in order. Returns what is to be shown of it: not hvrun-agent's words, which
  // are kept.
  std::string pass(int rank, std::string_view bytes);
  // Where the stream ends: what was kept, and is none of them after all; by rank.
  std::map<int, std::string> take_rest();

  // hvrun-agent has told of a rank.
  bool is_told() const { return !told_.empty(); }
  // "on hosts a, b: find the program x: ...\n  try: ..."; each reason once.
  std::vector<std::string> texts() const;
  // Of Hydra's daemons, which tell it there, too.
  std::string daemons_words() const;

 private:
  struct First {
    std::string bytes;      // what the stream begins with
    bool is_known = false;  // whether that is hvrun-agent's or not
  };
  const Mpirun& mpirun_;
  std::map<int, First> first_;                                                 // by rank
  std::map<std::pair<std::string, std::string>, std::set<std::string>> told_;  // hosts, by reason
};

}  // namespace hv::launcher
