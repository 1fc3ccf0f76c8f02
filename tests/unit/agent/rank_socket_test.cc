// Tests of launcher/agent/rendezvous/rank_socket: last messages, and which reports are kept.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/rendezvous/rank_socket.h"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include "src/base/text.h"
#include "src/net/socket.h"

using namespace hv;
using namespace hv::launcher;

namespace {

// An agent's socket with rank 0, which has joined.
struct Host {
  Host()
      : socket(loop, JobKey{},
               {[](wire::FenceIn) {},
                [](const wire::RankLost&) {},
                {},
                [this](const wire::TensorStalled& told) { stalls.push_back(told); },
                [this](const wire::CallStalled& told) { calls.push_back(told); }}) {
    REQUIRE(socket.listen(random_hex(12), 0).ok());
    socket.expect({0});
    REQUIRE(connect_unix(socket.name(), &rank).ok());
    loop.run_once(now());
    say(encode_frame_of(rendezvous::Join{}));
    loop.run_once(now());
  }
  void say(const std::string& bytes) {
    REQUIRE(send_all(rank.get(), bytes.data(), bytes.size(), std::chrono::seconds(5)).ok());
  }

  std::vector<wire::TensorStalled> stalls;
  std::vector<wire::CallStalled> calls;
  EventLoop loop;
  RankSocket socket;
  UniqueFd rank;
};

std::string steps_of(std::uint64_t steps) {
  return encode_frame_of(rendezvous::Steps{{steps, 1000 * steps, 0, 0, 0}});
}

}  // namespace

TEST_CASE("a leave notice behind many messages is read before the rank's end is judged") {
  Host host;
  for (int i = 0; i < 10; ++i)
    host.say(encode_frame_of(rendezvous::Put{"key", std::string(5000, 'x')}));
  host.say(steps_of(7) + encode_frame_of(rendezvous::Goodbye{}));
  host.rank.reset();
  CHECK(host.socket.rank_ended(0) == RankStanding::kLeft);
  CHECK(host.socket.reports().step_times(0).steps == 7);
}

TEST_CASE("a rank that has ended may leave its socket open, and is waited for no longer") {
  Host host;
  host.say(steps_of(7));
  CHECK(host.socket.rank_ended(0) == RankStanding::kJoined);
  CHECK(host.socket.reports().step_times(0).steps == 7);
}

TEST_CASE("the longest training that a rank reports is kept") {
  Host host;
  host.say(steps_of(100) + steps_of(200) + steps_of(3));
  host.loop.run_once(now());
  CHECK(host.socket.reports().step_times(0).steps == 200);
  CHECK(host.socket.reports().step_times(1).steps == 0);
}

TEST_CASE("a rank's stall is passed on with its rank, and an implausible stall is not") {
  Host host;
  host.say(encode_frame_of(rendezvous::Stalled{{61, {3, 5}, 0, "w"}}));
  host.loop.run_once(now());
  REQUIRE(host.stalls.size() == 1);
  CHECK(host.stalls[0].by == 0);
  CHECK(host.stalls[0].stall.missing == std::vector<std::uint32_t>{3, 5});
  host.say(encode_frame_of(rendezvous::Stalled{{61, {}, 0, "w"}}));
  host.loop.run_once(now());
  CHECK(host.stalls.size() == 1);
}

TEST_CASE("a wait is passed on from a connection that has not joined, if it may be a rank's here") {
  Host host;
  const auto say_alone = [&host](const rendezvous::Waits& waits) {
    UniqueFd connection;
    REQUIRE(connect_unix(host.socket.name(), &connection).ok());
    const std::string bytes = encode_frame_of(waits);
    REQUIRE(send_all(connection.get(), bytes.data(), bytes.size(), std::chrono::seconds(5)).ok());
    for (int round = 0; round < 3; ++round) host.loop.run_once(now());
  };
  say_alone({0, {61, false, "torch.distributed.all_reduce", "train.py:12"}});
  REQUIRE(host.calls.size() == 1);
  CHECK(host.calls[0].by == 0);
  CHECK(host.calls[0].stall.place == "train.py:12");
  say_alone({1, {61, false, "of another host", ""}});
  say_alone({0, {-1, false, "of no time", ""}});
  say_alone({0, {61, false, std::string(wire::kMaxCallText + 1, 'x'), ""}});
  CHECK(host.calls.size() == 1);
}
