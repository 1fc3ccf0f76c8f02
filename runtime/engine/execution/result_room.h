// Where an operation's result goes: its size, and memory where the caller gave none, or none that
// will do.
// SPDX-License-Identifier: Apache-2.0
//
// A rank has to take part whatever its caller gave: the peers know nothing of its output. So memory
// of the library stands in for an output that is missing, too small, or in the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/engine/operation.h"

namespace hv::runtime {

// This rank's place in the set, and the set's size.
struct Place {
  int rank = 0;
  int size = 1;
};

// Elements of this rank's input.
std::int64_t own_elements(const Operation& operation);

// Bytes of this rank's input.
std::size_t own_bytes(const Operation& operation);

// The result's shape and bytes, but for an alltoall's, which only its peers know. kArgument on
// every rank alike when it is too large to be counted. first_extents: where they vary, by rank.
Status size_result(Operation& operation, const std::vector<std::int64_t>& first_extents,
                   const Place& place);

// Nothing is to be moved for this operation, on any rank. After size_result().
bool moves_nothing(const Operation& operation, const std::vector<std::int64_t>& first_extents);

// Before the start. kMemory on this rank alone when there is none.
Status make_room(Operation& operation);

// Where the collective writes the result; an alltoall's is nullptr.
std::byte* destination(const Operation& operation);

// An alltoall has learnt how many rows come from each rank. nullptr: nothing comes, or there is no
// such memory.
std::byte* make_room_for(Operation& operation, const std::vector<std::int64_t>& received);

// A backend has made the memory that was asked for.
void take_given(Operation& operation, MemoryPtr memory);

// After success: makes the memory that was asked for and no backend has given, and moves a result
// that stood aside to the caller's output. kArgument when that is too small; kMemory as from
// make_room(). ended: when the collective's own is there; nullptr: it is.
Status hand_over(Operation& operation, MomentPtr ended);

// The caller is through with a result that lies in the library's memory on a GPU: it is others'
// when the tensor's stream has done what it had been given by now.
void give_back_result(Operation& operation);

}  // namespace hv::runtime
