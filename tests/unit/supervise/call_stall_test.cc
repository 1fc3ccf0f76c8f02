// Tests of StackInquiry::add_call_stall: waits of ranks in torch.distributed.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/unit/supervise/supervised.h"

using namespace hv::launcher;
namespace wire = hv::wire;

namespace {

const wire::CallStall kWait{60, false, "torch.distributed.all_reduce", "train.py:12"};

// Two ranks, which end soon after the second request for their stacks.
struct Waiting : FakeAgent {
  int requests = 0;
  Waiting() {
    on_stack_request = [this](const wire::StackRequest& request) {
      wire::StackReply reply{request.number, {}};
      for (const std::uint32_t rank : request.ranks)
        reply.stacks.push_back({rank, 100 + rank, "python3", "", "", "", "no stack"});
      send(reply);
      if (++requests > 1) return later(std::chrono::milliseconds(200), [this] { finish_all(0); });
      send(wire::CallStalled{1, kWait});  // it began before the report of rank 0's
      send(wire::CallStalled{1, {0, false, "torch.distributed.barrier", ""}});  // after it
    };
  }
};

}  // namespace

TEST_CASE("a wait in torch.distributed is reported once, with the stacks of all ranks") {
  struct Stalled : Waiting {
    void on_go() override {
      send(wire::CallStalled{0, kWait});
      send(wire::CallStalled{1, kWait});
    }
  } a;
  const Outcome outcome = supervise({{"a", &a}}, "a:2");
  CAPTURE(outcome.err);
  CHECK(a.requests == 2);
  CHECK(contains(outcome.err,
                 "rank 0 has waited over 60 s in torch.distributed.all_reduce (train.py:12); "
                 "where the ranks stand:\n  ranks 0-1 on host a (python3): no stack\n"));
  CHECK_FALSE(contains(outcome.err, "rank 1 has waited over 60 s"));
  CHECK(contains(outcome.err, " in torch.distributed.barrier; where the ranks stand:"));
}

TEST_CASE("a wait in torch.distributed that is too long ends the job") {
  struct TooLong : FakeAgent {
    void on_go() override {
      for (const std::uint32_t rank : {0, 1})
        send(wire::CallStalled{rank, {300, true, kWait.call, kWait.place}});
    }
  } a;
  const Outcome outcome = supervise({{"a", &a}}, "a:2");
  CHECK(outcome.code == 4);
  CHECK(contains(outcome.err,
                 "error: rank 0 has waited over 5 min in torch.distributed.all_reduce "
                 "(train.py:12): the job ends (HVRUN_STALL_SHUTDOWN_SECONDS)"));
  CHECK(a.ended);
}
