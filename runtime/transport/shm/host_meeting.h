// How the ranks of one host find each other and come to share memory, over an abstract Unix socket.
// SPDX-License-Identifier: Apache-2.0
//
// The host's leader (local rank 0) listens under a random name that it publishes; the others
// connect, both sides check the user and prove the job's key, and the leader hands the memfd over.
// A rank that cannot reach that name (another network namespace: a container of its own) counts as
// a host of its own. The connections stay open, and each side holds a pidfd of the other: their end
// is the first sign of a death.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/transport/shm/host_memory.h"
#include "src/base/fork_guarded_fd.h"
#include "src/base/status.h"
#include "src/base/unique_fd.h"
#include "src/contract/contract.h"
#include "src/wire/authentication.h"

namespace hv::runtime {

// A process of this host that can be watched: readable when it has ended.
struct WatchedPeer {
  int rank = -1;
  ForkGuardedFd pidfd;   // where the kernel and the PID namespace allow
  ForkGuardedFd socket;  // its end counts where there is no pidfd
};

struct MeetingTerms {
  std::string job_id;
  JobKey key{};
  int rank = 0;
  int epoch = 0;
  std::chrono::milliseconds timeout{30000};
};

class HostMeeting {
 public:
  explicit HostMeeting(const MeetingTerms& terms) : terms_(terms) {}

  // Leader, before the addresses are published: *name is where members connect.
  Status listen(std::string* name);
  // Member: false when that name cannot be reached from here or belongs to another user.
  bool reach(const std::string& name);
  // Leader, when every member has reached it: makes the memory and hands it to `members`.
  Status lead(const std::vector<int>& members, const HostGeometry& geometry, MappedMemory* memory,
              std::vector<WatchedPeer>* watched);
  // Member, after reach().
  Status follow(int leader, const HostGeometry& geometry, MappedMemory* memory,
                std::vector<WatchedPeer>* watched);

 private:
  // Has connected, and not said who it is.
  struct Guest {
    UniqueFd socket;
    std::int32_t pid = 0;
  };

  Status hear(const std::vector<int>& members, int memfd, TimePoint deadline,
              std::vector<Guest>* guests, std::vector<WatchedPeer>* watched);
  Status take_connection(std::vector<Guest>* guests);
  void admit(const std::vector<int>& members, int memfd, TimePoint deadline, Guest guest,
             std::vector<WatchedPeer>* watched);

  MeetingTerms terms_;
  UniqueFd listener_;
  UniqueFd leader_;
};

}  // namespace hv::runtime
