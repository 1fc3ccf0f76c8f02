// Rendezvous of ranks through the real agent: fences, gets, losses, and clients that misbehave.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <map>

#include "launcher/agent/rendezvous/rank_rendezvous.h"
#include "src/net/socket.h"
#include "src/rendezvous/messages.h"
#include "src/wire/mpi_wiring.h"
#include "tests/unit/agent/agent_client.h"

using namespace hv;
using namespace hv::tests;
using namespace std::chrono_literals;
using launcher::RankRendezvous;

namespace {

// A client like libhvrun, but without its checks.
class RawRank {
 public:
  explicit RawRank(const std::string& name) { REQUIRE(connect_unix(name, &fd_).ok()); }
  template <class Message>
  void send(const Message& message) {
    send_bytes(encode_frame_of(message));
  }
  void send_bytes(const std::string& bytes) {
    (void)send_all(fd_.get(), bytes.data(), bytes.size(), 10s);
  }
  template <class Message>
  Message expect() {
    Frame frame = next();
    REQUIRE(frame.type == static_cast<std::uint8_t>(Message::kType));
    Message message;
    REQUIRE(decode(frame.payload, &message));
    return message;
  }
  bool is_hung_up_on() {
    char byte;
    return !read_exactly(fd_.get(), &byte, 1, 10s).ok();
  }
  void join(std::uint32_t rank, std::uint32_t epoch = 0) {
    rendezvous::Join hello;
    hello.rank = rank;
    hello.epoch = epoch;
    send(hello);
  }

 private:
  Frame next() {
    Frame frame;
    char bytes[4096];
    while (!parser_.next(&frame)) {
      const ssize_t got = ::recv(fd_.get(), bytes, sizeof bytes, 0);
      REQUIRE(got > 0);
      REQUIRE(parser_.feed({bytes, static_cast<std::size_t>(got)}));
    }
    return frame;
  }
  UniqueFd fd_;
  FrameParser parser_{rendezvous::kMaxPayload};
};

struct MeetingJob {
  AgentClient client;
  std::string socket;
  std::vector<std::uint32_t> pids;

  explicit MeetingJob(std::uint32_t ranks, wire::SetupRequest setup = {}) {
    setup.key.fill(7);
    socket = client.set_up(setup).agent_socket;
    pids = client.start(launch_of({"sleep", "1000"}, ranks)).pids;
  }
};

}  // namespace

TEST_CASE("ranks put, fence and get through the agent, and a loss is reported to them") {
  MeetingJob job(2);
  RawRank zero(job.socket), one(job.socket);
  zero.join(0);
  one.join(1);
  CHECK(zero.expect<rendezvous::Welcome>().key[0] == 7);
  one.expect<rendezvous::Welcome>();
  zero.send(rendezvous::Put{"address", std::string("zero\0bytes", 10)});
  zero.send(rendezvous::Fence{1});
  CHECK(!job.client.comes<wire::FenceIn>(100ms));  // rank 1 has not come
  one.send(rendezvous::Put{"address", "one"});
  one.send(rendezvous::Fence{1});
  const auto in = job.client.expect<wire::FenceIn>();
  CHECK(in.number == 1);
  CHECK(in.puts.size() == 2);
  wire::FenceOut out{in.epoch, in.number, in.puts};
  out.puts.push_back({7, "address", "far away"});
  job.client.send(out);
  CHECK(zero.expect<rendezvous::FenceDone>().number == 1);
  CHECK(one.expect<rendezvous::FenceDone>().number == 1);
  one.send(rendezvous::Get{0, "address"});
  CHECK(one.expect<rendezvous::Value>().value == std::string("zero\0bytes", 10));
  one.send(rendezvous::Get{7, "address"});
  CHECK(one.expect<rendezvous::Value>().value == "far away");
  one.send(rendezvous::Get{7, "nothing"});
  CHECK(!one.expect<rendezvous::Value>().found);

  zero.send(rendezvous::Lost{9, "no answer"});
  const auto lost = job.client.expect<wire::RankLost>();
  CHECK(lost.by == 0);
  CHECK(lost.rank == 9);
  job.client.send(wire::RankDied{9, "ended with SIGKILL"});
  CHECK(zero.expect<rendezvous::Event>().rank == 9);
  CHECK(one.expect<rendezvous::Event>().reason == "ended with SIGKILL");
  CHECK(job.client.finish(0) == 0);
}

TEST_CASE(
    "a wait at a fence is reported at its limit, at twice, four times that, and as too long") {
  wire::SetupRequest setup;
  setup.stalls.warning_s = 0.05;
  setup.stalls.end_s = 0.15;
  MeetingJob job(2, setup);
  RawRank zero(job.socket);
  zero.join(0);
  zero.expect<rendezvous::Welcome>();
  zero.send(rendezvous::Fence{1});
  const std::vector<std::pair<double, bool>> due{
      {0.05, false}, {0.1, false}, {0.15, true}, {0.2, false}};
  for (const auto& [waited, is_too_long] : due) {
    const auto stall = job.client.expect<wire::FenceStalled>();
    CHECK(stall.waited_s == doctest::Approx(waited));
    CHECK(stall.is_too_long == is_too_long);
  }
  CHECK(job.client.finish(0) == 0);
}

TEST_CASE("a wait at a fence is reported once a stopped job goes on") {
  wire::SetupRequest setup;
  setup.stalls.warning_s = 0;
  setup.stalls.end_s = 0.2;
  MeetingJob job(2, setup);
  job.client.send(wire::Silence{1, true});
  (void)job.client.expect<wire::SilenceNoted>();
  RawRank zero(job.socket);
  zero.join(0);
  zero.expect<rendezvous::Welcome>();
  zero.send(rendezvous::Fence{1});
  CHECK(!job.client.comes<wire::FenceStalled>(400ms));
  job.client.send(wire::Silence{2, false});
  CHECK(job.client.expect<wire::FenceStalled>().is_too_long);
  CHECK(job.client.finish(0) == 0);
}

TEST_CASE("a local rank's death is reported to the others at once, and to those that join later") {
  MeetingJob job(2);
  RawRank one(job.socket);
  one.join(1);
  one.expect<rendezvous::Welcome>();
  ::kill(static_cast<pid_t>(job.pids[0]), SIGSEGV);
  const auto event = one.expect<rendezvous::Event>();
  CHECK(event.rank == 0);
  CHECK(event.reason.find("SIGSEGV") != std::string::npos);
  RawRank later(job.socket);
  later.join(1, 1);
  later.expect<rendezvous::Welcome>();
  CHECK(later.expect<rendezvous::Event>().rank == 0);
  CHECK(job.client.finish(0) == 0);
}

TEST_CASE("a worker is refused also after its rank has joined anew") {
  MeetingJob job(1);
  RawRank rank(job.socket), worker(job.socket);
  rank.join(0, 1);
  rank.expect<rendezvous::Welcome>();
  worker.join(0, 0);
  CHECK(worker.expect<rendezvous::Refused>().reason.find("this is a worker of rank 0, ") == 0);
}

TEST_CASE("clients that break the protocol are dropped, the others do not notice") {
  MeetingJob job(1);
  RawRank good(job.socket);
  good.join(0);
  good.expect<rendezvous::Welcome>();
  for (const std::string& bytes :
       {std::string("\xff\xff\xff\xff....."), std::string(5, '\0'),
        encode_frame_of(rendezvous::Fence{1}), encode_frame(1, "short"), encode_frame(99, "")}) {
    RawRank bad(job.socket);
    bad.send_bytes(bytes);
    CHECK(bad.is_hung_up_on());
  }
  RawRank stranger(job.socket), twin(job.socket), old(job.socket), meddler(job.socket);
  stranger.join(5);
  CHECK(stranger.expect<rendezvous::Refused>().reason.find("rank 5") != std::string::npos);
  twin.join(0);
  CHECK(twin.expect<rendezvous::Refused>().reason.find(
            "this is a worker of rank 0, which has joined already, as pid") == 0);
  rendezvous::Join of_old;
  of_old.protocol = 99;
  old.send(of_old);
  CHECK(old.expect<rendezvous::Refused>().reason.find("protocol 99") != std::string::npos);
  rendezvous::Join of_mpi;
  of_mpi.epoch = wire::kPmiEpoch;
  meddler.send(of_mpi);
  CHECK(meddler.expect<rendezvous::Refused>().reason.find("epoch") != std::string::npos);
  good.send(rendezvous::Put{"long", std::string(rendezvous::kMaxValueBytes + 1, 'x')});
  CHECK(good.is_hung_up_on());
  CHECK(job.client.finish(0) == 0);
}

TEST_CASE("a rank's newest step times go with the report of its end, whatever else it sends") {
  MeetingJob job(3);
  RawRank zero(job.socket), one(job.socket);
  zero.join(0);
  one.join(1);
  zero.expect<rendezvous::Welcome>();
  one.expect<rendezvous::Welcome>();
  zero.send(rendezvous::Steps{{1, 10, 2, 3, 1}});
  zero.send(rendezvous::Steps{{2, 20, 4, 6, 2}});
  zero.send(rendezvous::Goodbye{});
  one.send(rendezvous::Steps{{7, 70, 0, 0, 0}});
  one.send(rendezvous::Steps{{8, 70, 71, 0, 1}});  // more than the whole
  CHECK(one.is_hung_up_on());
  job.client.send(wire::StepsRequest{});
  std::uint64_t steps_of_one = 0;
  for (const wire::RankSteps& each : job.client.expect<wire::StepsReply>().ranks)
    if (each.rank == 1) steps_of_one = each.times.steps;
  CHECK(steps_of_one == 7);
  for (const std::uint32_t pid : job.pids) ::kill(static_cast<pid_t>(pid), SIGKILL);
  std::map<std::uint32_t, wire::StepTimes> told;
  for (int i = 0; i < 3; ++i) {
    const auto exited = job.client.expect<wire::Exited>();
    told[exited.rank] = exited.step_times;
  }
  CHECK(told[0].steps == 2);
  CHECK(told[0].exchange_nanoseconds == 6);
  CHECK(told[1].steps == 7);
  CHECK(told[2].steps == 0);
  CHECK(job.client.finish(0) == 0);
}

// The agent is kept from reading while both come, so that it sees the end first as often as not.
TEST_CASE("a rank's last message counts, even if its end is noticed first") {
  for (int round = 0; round < 20; ++round) {
    MeetingJob job(1);
    RawRank zero(job.socket);
    zero.join(0);
    zero.expect<rendezvous::Welcome>();
    ::kill(job.client.agent(), SIGSTOP);
    wait_until([&] { return state_of(job.client.agent()) == 'T'; }, "the agent's stop");
    ::kill(static_cast<pid_t>(job.pids[0]), SIGKILL);
    wait_until([&] { return state_of(static_cast<pid_t>(job.pids[0])) == 'Z'; }, "the rank's end");
    zero.send(rendezvous::Steps{{1, 10, 2, 3, 1}});
    zero.send(rendezvous::Goodbye{});
    ::kill(job.client.agent(), SIGCONT);
    const auto exited = job.client.expect<wire::Exited>();
    CHECK(exited.step_times.steps == 1);
    CHECK_FALSE(exited.left_unannounced);
    CHECK(job.client.finish(0) == 0);
  }
}

TEST_CASE("a fence waits for ranks that have not joined, not for those that left") {
  RankRendezvous rendezvous({0, 1, 2});
  rendezvous.join(0, 0);
  rendezvous.come_to_fence(0, 0, 1);
  CHECK(rendezvous.complete().empty());
  for (const std::uint32_t rank : {1u, 2u}) {
    CHECK(rendezvous.complete().empty());
    rendezvous.join(rank, 0);
    rendezvous.leave(rank, 0);
    rendezvous.note_end(rank);
  }
  CHECK(rendezvous.complete().size() == 1);
  CHECK(rendezvous.complete().empty());  // reported once
  CHECK(rendezvous.pass({0, 1, {}}) == std::vector<std::uint32_t>{0});
}

TEST_CASE("a fence never ends without a rank that was lost before it arrived") {
  RankRendezvous rendezvous({0, 1, 2});
  for (const std::uint32_t rank : {0u, 1u}) rendezvous.join(rank, 0);
  rendezvous.come_to_fence(0, 0, 1);
  rendezvous.note_end(2);  // it had not joined
  CHECK(rendezvous.complete().empty());
  rendezvous.note_end(1);  // it had joined, and sent no leave notice
  CHECK(rendezvous.complete().empty());
}

TEST_CASE("a fence ends that a rank had reached before it was lost") {
  RankRendezvous rendezvous({0, 1});
  for (const std::uint32_t rank : {0u, 1u}) rendezvous.join(rank, 0);
  rendezvous.come_to_fence(1, 0, 1);
  rendezvous.note_end(1);
  CHECK(rendezvous.complete().empty());
  rendezvous.come_to_fence(0, 0, 1);
  CHECK(rendezvous.complete().size() == 1);
}

TEST_CASE("a second program does not wait for a rank whose first was its last") {
  RankRendezvous rendezvous({0, 1});
  for (const std::uint32_t rank : {0u, 1u}) {
    rendezvous.join(rank, 0);
    rendezvous.leave(rank, 0);
  }
  rendezvous.join(0, 0);
  rendezvous.come_to_fence(0, 0, 1);
  CHECK(rendezvous.complete().empty());
  rendezvous.note_end(1);
  CHECK(rendezvous.complete().size() == 1);
}

TEST_CASE("a second program of the same ranks starts a new rendezvous") {
  RankRendezvous rendezvous({0, 1});
  for (const std::uint32_t rank : {0u, 1u}) rendezvous.join(rank, 0);
  rendezvous.leave(0, 0);
  rendezvous.join(0, 0);  // the next program, while rank 1 still runs the first
  rendezvous.come_to_fence(0, 0, 1);
  CHECK(rendezvous.complete().empty());
  rendezvous.leave(1, 0);
  CHECK(rendezvous.complete().empty());  // its next program will come
  CHECK(!rendezvous.is_joined(1));
  rendezvous.join(1, 0);
  rendezvous.come_to_fence(1, 0, 1);
  CHECK(rendezvous.complete().size() == 1);
}

TEST_CASE("epochs are separate, and puts are sent once, with the fence after them") {
  RankRendezvous rendezvous({4});
  rendezvous.join(4, 0);
  rendezvous.join(4, 1);
  CHECK(rendezvous.put(4, 0, "k", "old"));
  CHECK(rendezvous.put(4, 1, "k", "new"));
  rendezvous.come_to_fence(4, 1, 1);
  const auto fences = rendezvous.complete();
  REQUIRE(fences.size() == 1);
  CHECK(fences[0].epoch == 1);
  CHECK(fences[0].puts.at(0).value == "new");
  CHECK(rendezvous.pass({1, 1, fences[0].puts}).size() == 1);
  CHECK(*rendezvous.get(1, 4, "k") == "new");
  CHECK(rendezvous.get(0, 4, "k") == nullptr);
  rendezvous.come_to_fence(4, 1, 2);
  CHECK(rendezvous.complete().at(0).puts.empty());
  CHECK(rendezvous.pass({1, 9, {}}).empty());  // no rank waits there
}

TEST_CASE("what ranks put between fences is bounded") {
  RankRendezvous rendezvous({0});
  rendezvous.join(0, 0);
  const std::string value(1 << 20, 'x');
  int accepted = 0;
  while (rendezvous.put(0, 0, "k", value)) REQUIRE(++accepted < 100);
  CHECK(accepted == 31);
}

TEST_CASE("the begin and end of a pause are reported to ranks, also to those that join later") {
  MeetingJob job(2);
  RawRank zero(job.socket);
  zero.join(0);
  zero.expect<rendezvous::Welcome>();
  job.client.send(wire::Silence{1, true});
  CHECK(job.client.expect<wire::SilenceNoted>().number == 1);
  CHECK(zero.expect<rendezvous::Silence>().allowed);
  RawRank one(job.socket);
  one.join(1);
  one.expect<rendezvous::Welcome>();
  CHECK(one.expect<rendezvous::Silence>().allowed);
  job.client.send(wire::Silence{2, true});  // known already
  job.client.send(wire::Silence{3, false});
  CHECK(job.client.expect<wire::SilenceNoted>().number == 2);
  CHECK(job.client.expect<wire::SilenceNoted>().number == 3);
  CHECK(!zero.expect<rendezvous::Silence>().allowed);
  CHECK(!one.expect<rendezvous::Silence>().allowed);
}
