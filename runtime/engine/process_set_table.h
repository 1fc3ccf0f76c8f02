// Which process sets there are, and what of the hosts' memory and connections each has.
// SPDX-License-Identifier: Apache-2.0
//
// Every rank keeps the same table by making the same changes in the same order, those that set 0
// decides on. So a set's number, its lanes and every member's cell are known everywhere without
// being told. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "runtime/transport/set_plane.h"
#include "src/base/status.h"

namespace hv::runtime {

struct ProcessSet {
  std::uint32_t number = 0;  // never given twice in a job
  SetPlacement place;        // its cells and lanes are given again after its removal
  const std::vector<int>& members() const { return place.members; }
};

class ProcessSetTable {
 public:
  // Begins with set 0, of all ranks. most_sets: at once in the job, that one included; most_cells:
  // of which one rank can be a member.
  ProcessSetTable(int ranks, int most_sets, int most_cells);

  // members: in any order. kArgument, and nothing changes: no member, no rank of the job, a rank
  // named twice, a set that exists, no room for one more. *added: valid until it is removed.
  Status add(std::vector<int> members, const ProcessSet** added);
  // kArgument: unknown, or set 0, which lives as long as the job.
  Status remove(std::uint32_t number);
  // nullptr: there is none.
  const ProcessSet* find(std::uint32_t number) const;
  // That the next one will get: all below have been given.
  std::uint32_t next_number() const { return next_number_; }
  // By number.
  const std::map<std::uint32_t, ProcessSet>& all() const { return sets_; }

 private:
  Status check(const std::vector<int>& sorted) const;
  std::vector<bool>& cells_of(int rank);

  const int ranks_;
  const int most_sets_;
  const int most_cells_;
  std::map<std::uint32_t, ProcessSet> sets_;
  // By rank, of those that are in more sets than the one of all ranks, which has the first cell.
  std::map<int, std::vector<bool>> used_cells_;
  std::vector<bool> used_lanes_;
  std::uint32_t next_number_ = 0;
};

}  // namespace hv::runtime
