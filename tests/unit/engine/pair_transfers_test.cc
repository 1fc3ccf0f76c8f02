// Tests of sends and receives: two ends whose messages and bytes go through this test's hands.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/execution/pair_transfers.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#include "runtime/transport/shm/slot_rings.h"
#include "tests/fakes/landing_queue.h"

using namespace hv;
using namespace hv::runtime;

namespace {

const TimePoint kStart{std::chrono::seconds(1000)};

// One direction of a lane with little room, so that chunks and headers are cut everywhere.
struct Stream {
  LandingQueue bytes;
  std::size_t room = 100;
};

class EndOfLane : public Channel {
 public:
  EndOfLane(Stream& out, Stream& in) : out_(out), in_(in) {}
  std::size_t writable() const override {
    return out_.room - std::min(out_.room, out_.bytes.size());
  }
  void write(const void* bytes, std::size_t size) override {
    REQUIRE(size <= writable());
    out_.bytes.push(bytes, size);
  }
  std::span<const std::byte> readable() const override {  // never more than 7 at once
    const auto waiting = in_.bytes.waiting();
    return waiting.first(std::min<std::size_t>(7, waiting.size()));
  }
  void consume(std::size_t size) override { in_.bytes.pop(size); }
  std::size_t receive(std::byte* into, std::size_t size) override {
    return in_.bytes.receive(into, size);
  }
  void withdraw() noexcept override { in_.bytes.withdraw(); }
  void shrink() override {}

 private:
  Stream& out_;
  Stream& in_;
};

class LanePlane : public DataPlane {
 public:
  LanePlane(Stream& out, Stream& in) : end_(out, in) {}
  const Topology& topology() const override { throw std::logic_error("not asked"); }
  SlotRings& host() override { throw std::logic_error("not asked"); }
  Channel& channel(int, int lane) override {
    REQUIRE(lane == kPairLane);
    return end_;
  }
  Status health() const override { return Status::success(); }
  bool is_healthy() const override { return true; }

 private:
  EndOfLane end_;
};

OperationPtr operation_of(CollectiveKind kind, const std::string& name, void* data,
                          std::int64_t count, std::uint32_t set = 0) {
  auto operation = std::make_shared<Operation>();
  operation->name = name + (kind == CollectiveKind::kSend ? " (to rank 1)" : " (from rank 0)");
  operation->tag = name;
  operation->set = set;
  operation->description.kind = kind;
  operation->description.type = ElementType::kUint8;
  operation->description.shape = {count};
  if (kind == CollectiveKind::kSend) operation->input = static_cast<std::byte*>(data);
  if (kind == CollectiveKind::kReceive) operation->output = static_cast<std::byte*>(data);
  return operation;
}

// Carries by number, to a receiver that asks again.
class Carrier : public PairCarrier {
 public:
  std::unique_ptr<Collective> carry(PairRequest request) override {
    CHECK(request.peer == (request.sends ? 1 : 0));
    return std::make_unique<Move>(*this, std::move(request));
  }
  std::map<std::uint64_t, std::string> sent;
  bool is_slow = false, is_broken = false;
  bool is_silent = false;  // it has all bytes, and does not say so
  int given_up = 0;

 private:
  class Move : public Collective {
   public:
    Move(Carrier& all, PairRequest request) : all_(all), request_(std::move(request)) {}
    ~Move() override { all_.given_up += is_done_ ? 0 : 1; }
    Progress advance() override {
      if (all_.is_broken) return Progress::kFailed;
      const auto bytes = static_cast<std::size_t>(request_.bytes.count);
      if (request_.sends) {
        all_.sent.emplace(request_.number,
                          std::string(reinterpret_cast<const char*>(request_.bytes.input), bytes));
        has_sent_all_ = true;
        if (all_.is_silent) return Progress::kPending;
      } else {
        const auto found = all_.sent.find(request_.number);
        if (found == all_.sent.end() || all_.is_slow) return Progress::kPending;
        REQUIRE(found->second.size() == bytes);
        std::memcpy(request_.bytes.output, found->second.data(), bytes);
        all_.sent.erase(found);
      }
      is_done_ = true;
      return Progress::kDone;
    }
    Status status() const override { return {StatusCode::kSystem, "the carrier has broken"}; }
    bool has_sent_all() const override { return has_sent_all_; }

   private:
    Carrier& all_;
    PairRequest request_;
    bool is_done_ = false, has_sent_all_ = false;
  };
};

// Rank 0 and rank 1.
struct Pair {
  explicit Pair(PairCarrier* bytes_by = nullptr) : carrier(bytes_by) {}
  Stream there, back;
  LanePlane planes[2] = {{there, back}, {back, there}};
  PairCarrier* carrier = nullptr;
  PairTransfers ends[2] = {{&planes[0], std::chrono::seconds(60), {}, carrier},
                           {&planes[1], std::chrono::seconds(60), {}, carrier}};
  std::vector<std::pair<OperationPtr, Status>> ended[2];
  std::uint64_t number = 0;  // of what rank 0 has offered last

  void exchange_messages() {
    for (const int from : {0, 1}) {
      for (auto& [to, message] : ends[from].take_messages()) {
        CHECK(to == 1 - from);
        constexpr std::size_t kBefore = sizeof kPairMessages + 1 + sizeof(std::uint32_t);
        if (message[sizeof kPairMessages] == 1) {  // an offer; behind its set
          REQUIRE(message.size() >= kBefore + sizeof number);
          std::memcpy(&number, message.data() + kBefore, sizeof number);
        }
        const Status status =
            ends[to].receive(from, std::string_view(message).substr(sizeof kPairMessages));
        CHECK_MESSAGE(status.ok(), status.message);
      }
    }
  }
  void settle() {
    bool moved = true;
    while (moved) {
      moved = false;
      exchange_messages();
      exchange_messages();
      for (const int end : {0, 1}) {
        int culprit = -1;
        CHECK(ends[end].advance(kStart, &culprit, &moved).ok());
        for (auto& one : ends[end].take_ended()) ended[end].push_back(std::move(one));
      }
    }
  }
};

}  // namespace

TEST_CASE("bytes arrive whole through a lane of little room, whoever asks first") {
  for (const bool receiver_first : {false, true}) {
    Pair pair;
    std::string sent[3] = {std::string(1000, 'a'), "", std::string(333, 'c')}, received[3];
    const auto submit = [&](bool receives) {
      for (int i = 0; i < 3; ++i) {
        received[i].resize(sent[i].size());
        const std::string name = "t" + std::to_string(i);
        const auto count = static_cast<std::int64_t>(sent[i].size());
        if (receives) {
          pair.ends[1].submit(
              operation_of(CollectiveKind::kReceive, name, received[i].data(), count), 0, kStart);
        } else {
          pair.ends[0].submit(operation_of(CollectiveKind::kSend, name, sent[i].data(), count), 1,
                              kStart);
        }
      }
    };
    submit(receiver_first);
    pair.settle();
    CHECK(pair.ended[0].empty());
    CHECK(pair.there.bytes.size() == 0);  // nothing moves that was not asked for
    submit(!receiver_first);
    pair.settle();
    for (const int end : {0, 1}) {
      REQUIRE(pair.ended[end].size() == 3);
      for (const auto& [operation, status] : pair.ended[end]) CHECK(status.ok());
    }
    for (int i = 0; i < 3; ++i) CHECK(received[i] == sent[i]);
  }
}

// Half a chunk of the first transfer has come to where it belongs when that goes.
struct HalfAChunk : Pair {
  explicit HalfAChunk(const OperationPtr& receive) {
    ends[0].submit(operation_of(CollectiveKind::kSend, "t", first.data(), 1000, 5), 1, kStart);
    ends[1].submit(receive, 0, kStart);
    ends[0].submit(operation_of(CollectiveKind::kSend, "t", second.data(), 500), 1, kStart);
    ends[1].submit(operation_of(CollectiveKind::kReceive, "t", got_second.data(), 500), 0, kStart);
    exchange_messages();
    exchange_messages();
    ends[0].drop(5);
    const std::uint64_t header[2] = {number - 1, 100};
    there.bytes.push(header, sizeof header);
    int culprit = -1;
    bool moved = false;
    CHECK(ends[1].advance(kStart, &culprit, &moved).ok());
    there.bytes.push(first.data(), 50);
    REQUIRE(there.bytes.size() == 0);
  }
  std::string first = std::string(1000, 'a'), second = std::string(500, 'b');
  std::string got_second = std::string(500, ' ');
};

TEST_CASE("memory of a transfer that was dropped is neither read nor written") {
  for (const bool is_abandoned : {false, true}) {
    const auto receive = operation_of(CollectiveKind::kReceive, "t", nullptr, 1000, 5);
    auto memory = std::make_unique<std::byte[]>(1000);
    receive->output = memory.get();
    HalfAChunk pair(receive);
    CHECK(memory[49] == std::byte{'a'});
    if (is_abandoned) {
      pair.ends[1].abandon();
    } else {
      pair.ends[1].drop(5);
    }
    memory.reset();
    pair.there.bytes.push(pair.first.data(), 50);
    CHECK(pair.there.bytes.size() == 100);  // they lie there, and nowhere else
    if (is_abandoned) continue;
    pair.there.room = 1000;
    pair.settle();
    CHECK(pair.got_second == pair.second);
  }
}

TEST_CASE("what the library owns of a dropped transfer goes after its last use") {
  auto receive = operation_of(CollectiveKind::kReceive, "t", nullptr, 1000, 5);
  HalfAChunk pair(receive);
  const std::weak_ptr<Operation> watched = std::exchange(receive, nullptr);
  REQUIRE(!watched.expired());
  pair.ends[1].drop(5);
  CHECK(watched.expired());
  CHECK(std::memcmp(pair.there.bytes.waiting().data(), pair.first.data(), 50) == 0);
}

TEST_CASE("a carrier moves the bytes, and the lane none") {
  Carrier carrier;
  Pair pair(&carrier);
  std::string sent[3] = {std::string(1000, 'a'), "", std::string(333, 'c')}, received[3];
  for (int i = 0; i < 3; ++i) {
    received[i].resize(sent[i].size());
    const auto count = static_cast<std::int64_t>(sent[i].size());
    const std::string name = "t" + std::to_string(i);
    pair.ends[0].submit(operation_of(CollectiveKind::kSend, name, sent[i].data(), count), 1,
                        kStart);
    pair.ends[1].submit(operation_of(CollectiveKind::kReceive, name, received[i].data(), count), 0,
                        kStart);
  }
  pair.there.room = pair.back.room = 0;
  carrier.is_slow = true;
  pair.settle();
  CHECK(pair.ends[1].attention() == Attention::kDriven);
  CHECK(pair.ends[1].next_look() < kStart + std::chrono::milliseconds(1));
  carrier.is_slow = false;
  pair.settle();
  CHECK(pair.ends[1].attention() == Attention::kBell);
  for (const int end : {0, 1}) {
    REQUIRE(pair.ended[end].size() == 3);
    for (const auto& [operation, status] : pair.ended[end]) CHECK(status.ok());
  }
  for (int i = 0; i < 3; ++i) CHECK(received[i] == sent[i]);
  CHECK(carrier.given_up == 0);
}

TEST_CASE("what a carrier has of a set that goes is given up, and what it breaks is told") {
  Carrier carrier;
  carrier.is_slow = true;
  Pair pair(&carrier);
  std::string sent(10, 's'), received(10, ' ');
  for (const std::uint32_t set : {0u, 5u}) {
    pair.ends[0].submit(operation_of(CollectiveKind::kSend, "t", sent.data(), 10, set), 1, kStart);
    pair.ends[1].submit(operation_of(CollectiveKind::kReceive, "t", received.data(), 10, set), 0,
                        kStart);
  }
  pair.settle();
  pair.ends[1].drop(5);
  CHECK(carrier.given_up == 1);
  carrier.is_slow = false;
  carrier.is_broken = true;
  int culprit = 0;
  bool moved = false;
  const Status status = pair.ends[1].advance(kStart, &culprit, &moved);
  CHECK(status.message == "tensor 't (from rank 0)': the carrier has broken");
  CHECK(culprit == -1);
}

// The receiver's set may go because it has all of them.
TEST_CASE("of a set that goes a send has ended whose bytes are all on their way") {
  Carrier carrier;
  carrier.is_silent = true;
  Pair pair(&carrier);
  std::string sent(10, 's'), received(10, ' '), more(10, 'm');
  pair.ends[0].submit(operation_of(CollectiveKind::kSend, "t", sent.data(), 10), 1, kStart);
  pair.ends[0].submit(operation_of(CollectiveKind::kSend, "u", more.data(), 10), 1, kStart);
  pair.ends[1].submit(operation_of(CollectiveKind::kReceive, "t", received.data(), 10), 0, kStart);
  pair.settle();
  CHECK(received == sent);
  CHECK(pair.ended[0].empty());
  pair.ends[0].drop(0);
  const auto ended = pair.ends[0].take_ended();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].first->tag == "t");
  CHECK(ended[0].second.ok());
}

TEST_CASE("what has ended before its set goes is told yet") {
  Pair pair;
  pair.ends[0].submit(operation_of(CollectiveKind::kSend, "t", nullptr, 0), 1, kStart);
  pair.ends[1].submit(operation_of(CollectiveKind::kReceive, "t", nullptr, 0), 0, kStart);
  pair.exchange_messages();
  pair.exchange_messages();  // the answer, with which it has ended
  pair.ends[0].drop(0);
  CHECK(pair.ends[0].take_ended().size() == 1);
}

TEST_CASE("a transfer that one end drops in the middle harms no other") {
  Pair pair;
  std::string first(1000, 'a'), second(1000, 'b'), got_first(1000, ' '), got_second(1000, ' ');
  pair.ends[0].submit(operation_of(CollectiveKind::kSend, "t", first.data(), 1000, 5), 1, kStart);
  pair.ends[1].submit(operation_of(CollectiveKind::kReceive, "t", got_first.data(), 1000, 5), 0,
                      kStart);
  pair.ends[0].submit(operation_of(CollectiveKind::kSend, "t", second.data(), 1000), 1, kStart);
  pair.ends[1].submit(operation_of(CollectiveKind::kReceive, "t", got_second.data(), 1000), 0,
                      kStart);
  pair.exchange_messages();
  pair.exchange_messages();
  int culprit = -1;
  bool moved = false;
  CHECK(
      pair.ends[0].advance(kStart, &culprit, &moved).ok());  // a chunk of the first is in the lane
  CHECK(pair.there.bytes.size() == 100);
  pair.ends[1].drop(5);
  std::fill(got_first.begin(), got_first.end(), '!');
  CHECK(pair.ends[0].advance(kStart, &culprit, &moved).ok());
  pair.settle();
  pair.ends[0].drop(5);
  pair.settle();
  CHECK(got_first == std::string(1000, '!'));
  CHECK(got_second == second);
}

TEST_CASE("what another build would send is no message, more than was agreed on is a breach") {
  Pair pair;
  CHECK(pair.ends[1].receive(0, "").code == StatusCode::kSystem);
  CHECK(pair.ends[1].receive(0, std::string(30, '\x7f')).code == StatusCode::kSystem);
  std::string received(10, ' ');
  std::string sent(10, 's');
  pair.ends[0].submit(operation_of(CollectiveKind::kSend, "t", sent.data(), 10), 1, kStart);
  pair.ends[1].submit(operation_of(CollectiveKind::kReceive, "t", received.data(), 10), 0, kStart);
  pair.exchange_messages();
  const std::uint64_t lie[2] = {pair.number, 11};  // that transfer has ten bytes
  pair.there.bytes.push(lie, sizeof lie);
  pair.there.bytes.push("zzzzzzzzzzz", 11);
  int culprit = -1;
  bool moved = false;
  CHECK(pair.ends[1].advance(kStart, &culprit, &moved).code == StatusCode::kSystem);
  CHECK(culprit == 0);
  CHECK(received == std::string(10, ' '));
}

TEST_CASE("what waits is told once, with its name") {
  Pair pair;
  char byte = 0;
  CHECK(pair.ends[1].next_look() == TimePoint::max());
  pair.ends[1].submit(operation_of(CollectiveKind::kReceive, "late", &byte, 1), 0, kStart);
  CHECK(pair.ends[1].take_stalls(kStart).empty());
  const auto told = pair.ends[1].take_stalls(kStart + std::chrono::seconds(61));
  REQUIRE(told.size() == 1);
  CHECK(told[0].stall.peer == 0);
  CHECK(told[0].words.find("tensor 'late' has waited 61 s for rank 0 to send it; ") == 0);
  CHECK_FALSE(pair.ends[1].take_stall_end());
  CHECK(pair.ends[1].take_stalls(kStart + std::chrono::seconds(62)).empty());
  CHECK(pair.ends[1].take_stalls(kStart + std::chrono::seconds(125)).empty());
}

TEST_CASE("a send that nobody receives ends the job once it has waited for long enough") {
  PairTransfers sender{nullptr, Duration::zero(), std::chrono::seconds(20)};  // no warnings
  char byte = 0;
  sender.submit(operation_of(CollectiveKind::kSend, "alone", &byte, 1, 3), 1, kStart);
  for (const int after : {0, 19}) {
    CHECK(sender.take_stalls(kStart + std::chrono::seconds(after)).empty());
    CHECK_FALSE(sender.take_stall_end());
  }
  CHECK(sender.next_look() <= kStart + std::chrono::seconds(25));
  CHECK(sender.take_stalls(kStart + std::chrono::seconds(25)).empty());
  const auto words = sender.take_stall_end();
  REQUIRE(words);
  CHECK(words->find("tensor 'alone' has waited 25 s for rank 1 to receive it in process set 3; ") ==
        0);
  CHECK(words->find("That ends the job: HVRUN_STALL_SHUTDOWN_SECONDS is 20 s") !=
        std::string::npos);
  CHECK(sender.take_stalls(kStart + std::chrono::seconds(50)).empty());
  CHECK_FALSE(sender.take_stall_end());  // once
}
