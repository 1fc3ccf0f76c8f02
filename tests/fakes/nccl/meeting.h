// How the ranks of a communicator find each other: by an id, at whoever made it.
// SPDX-License-Identifier: Apache-2.0
//
// The id names a socket that a thread of its maker listens at until all have come. Each rank tells
// it who it is, with a socket of its own open by then; when all have come it answers all of them,
// and each rank makes its sockets to each other, and says goodbye. Whoever goes without a goodbye
// has died, and the others are told. Nothing of that lies in a file system.
#pragma once

#include <string>
#include <vector>

#include "runtime/backend/nccl/nccl_abi.h"
#include "src/base/unique_fd.h"
#include "tests/fakes/nccl/lanes.h"
#include "tests/fakes/nccl/sockets.h"

namespace hv::fake {

struct Member {
  int rank = 0;
  int ranks = 0;
  int device = 0;
  char gpu[16] = {};        // its UUID
  bool shares_gpu = false;  // it may lie on another rank's GPU
};

// What a rank has of a meeting that all came to.
struct Party {
  Lanes work;                   // what streams do
  Lanes host;                   // what calls do without a stream
  std::vector<UniqueFd> alive;  // of each peer; it ends when that dies
};

nccl::UniqueId make_meeting();
// Who have come to all the meetings that this process made.
int count_guests();

// Blocks until all ranks have come. An ncclResult_t: kSuccess; kInProgress: the sign was set.
int join_meeting(const nccl::UniqueId& id, const Member& self, const StopSign& stop, Party* party,
                 std::string* why);

// Tells the peers that this rank leaves and has not died.
void say_goodbye(const Party& party);

// False: it has died. What it said meanwhile is read, and the socket closed if it has left.
bool is_alive(UniqueFd* peer);

}  // namespace hv::fake
