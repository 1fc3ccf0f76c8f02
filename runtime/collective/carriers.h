// Carriers: which rank of each host stands for which rank of the other hosts.
// SPDX-License-Identifier: Apache-2.0
//
// What goes between a rank and another host goes through one rank there: the one with the same
// local number, modulo that host's ranks. A carrier has a place in its slot for each rank that it
// carries.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/collective/collective.h"
#include "runtime/transport/fabric.h"

namespace hv::runtime {

// Who carries what; equal on every rank.
struct Carriers {
  std::vector<int> carrier_of;       // here: local index of rank r's carrier, which may be r
  std::vector<int> place_of;         // which piece of that carrier's slot
  std::vector<int> remote_carriers;  // of this rank, from the next host on
  int most = 1;                      // pieces in the fullest slot of the job
};
Carriers plan_carriers(const Topology& topology);

// The size of one of `pieces` pieces of a slot: whole cache lines while there are any; 0 when not
// even a word of each fits.
std::size_t piece_bytes(std::size_t slot_bytes, int pieces);

// A collective whose outcome is kUnsupported with these words: where the job's shape leaves no word
// for each piece, which all ranks know alike.
std::unique_ptr<Collective> refused(std::string words);

}  // namespace hv::runtime
