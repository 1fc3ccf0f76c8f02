// ncclGroupStart and ncclGroupEnd: what a thread calls between them goes off at the end, together.
// SPDX-License-Identifier: Apache-2.0
//
// Each thread has its own. A call outside a group is a group of its own.
#pragma once

#include <memory>
#include <vector>

#include "tests/fakes/nccl/communicator.h"

namespace hv::fake {

class Group {
 public:
  static Group& of_thread();
  ~Group();

  void begin() { ++depth_; }
  int end();
  // A call that was refused spoils the group that it stands in; returns the result.
  int refuse_call(int result);
  int add(const std::shared_ptr<Communicator>& communicator, const Operation& operation);
  // Something goes on with this one that a blocking communicator's caller waits for.
  int add_wait(const std::shared_ptr<Communicator>& communicator);

 private:
  // The operations of one communicator, none: only to be waited for.
  struct Share {
    std::shared_ptr<Communicator> communicator;
    std::vector<Operation> operations;
    bool waits = false;
  };
  Share& share_of(const std::shared_ptr<Communicator>& communicator);
  void require_closed(const std::vector<Share>& but);
  void leave_open(const std::shared_ptr<Communicator>& communicator);

  int depth_ = 0;
  int error_ = 0;
  std::vector<Share> shares_;
  std::vector<std::weak_ptr<Communicator>> open_;  // of the last group that went on
};

}  // namespace hv::fake
