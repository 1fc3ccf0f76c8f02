// Sends and receives with a peer whose messages and bytes are anything.
// SPDX-License-Identifier: Apache-2.0
//
// s NAME COUNT send, r NAME COUNT receive, m PIECE a message, b PIECE bytes on the lane, a advance,
// d SET drop. Sets are 0 and 1, by the lowest bit of NAME.
#include "runtime/engine/execution/pair_transfers.h"

#include <set>

#include "tests/fakes/landing_queue.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::runtime;

namespace {

class Lane : public Channel {
 public:
  std::size_t writable() const override { return 50; }
  void write(const void*, std::size_t size) override {
    HV_CHECK(size <= writable(), "no more than there is room for");
  }
  std::span<const std::byte> readable() const override {
    const auto waiting = arrived.waiting();
    return waiting.first(std::min<std::size_t>(5, waiting.size()));
  }
  void consume(std::size_t size) override { arrived.pop(size); }
  std::size_t receive(std::byte* into, std::size_t size) override {
    return arrived.receive(into, size);
  }
  void withdraw() noexcept override { arrived.withdraw(); }
  void shrink() override {}
  LandingQueue arrived;
};

class Plane : public DataPlane {
 public:
  const Topology& topology() const override { check_failed(__FILE__, __LINE__, "unasked", ""); }
  SlotRings& host() override { check_failed(__FILE__, __LINE__, "unasked", ""); }
  Channel& channel(int, int) override { return lane; }
  Status health() const override { return Status::success(); }
  bool is_healthy() const override { return true; }
  Lane lane;
};

class Rank {
 public:
  void submit(CollectiveKind kind, char name, std::size_t count) {
    auto operation = std::make_shared<Operation>();
    operation->tag = std::string(1, name);
    operation->name = operation->tag + (kind == CollectiveKind::kSend ? "s" : "r");
    operation->set = static_cast<std::uint32_t>(name & 1);
    operation->description.kind = kind;
    operation->description.type = ElementType::kUint8;
    operation->description.shape = {static_cast<std::int64_t>(count)};
    const std::string key = operation->name;
    if (!in_flight_.insert(key).second) return;  // the queue refuses it
    operation->owned = std::make_unique<std::byte[]>(count);
    if (kind == CollectiveKind::kSend) operation->input = operation->owned.get();
    if (kind == CollectiveKind::kReceive) operation->output = operation->owned.get();
    transfers_.submit(operation, 1, now());
  }
  bool receive(std::string_view message) {
    std::uint32_t set = 0;
    if (!PairTransfers::read_set(message, &set)) return false;
    const Status status = transfers_.receive(1, message);
    HV_CHECK(status.ok() || !status.message.empty(), "a refusal has words");
    return status.ok();
  }
  void arrive(std::string_view bytes) { plane_.lane.arrived.push(bytes.data(), bytes.size()); }
  bool advance() {
    int culprit = -1;
    bool moved = false;
    const Status status = transfers_.advance(TimePoint{}, &culprit, &moved);
    HV_CHECK(status.ok() || culprit == 1, "who has done it is told");
    take_ended();
    for (const auto& [to, message] : transfers_.take_messages())
      HV_CHECK(to == 1 && message.size() > sizeof kPairMessages, "messages go to the peer");
    return status.ok();
  }
  void drop(std::uint32_t set) {
    transfers_.drop(set);
    take_ended();  // what has ended before, or is wholly on its way
    std::erase_if(in_flight_, [set](const std::string& name) {
      return static_cast<std::uint32_t>(name[0] & 1) == set;
    });
  }

 private:
  void take_ended() {
    for (const auto& [operation, outcome] : transfers_.take_ended()) {
      HV_CHECK(in_flight_.erase(operation->name) == 1, "what ends was in flight, and ends once");
      HV_CHECK(outcome.ok() || !outcome.message.empty(), "an error has words");
    }
  }

  Plane plane_;
  PairTransfers transfers_{&plane_, std::chrono::seconds(60)};
  std::set<std::string> in_flight_;
};

// As a peer of this build says it.
std::string peer_messages(CollectiveKind kind, char name, std::int64_t count) {
  Plane plane;
  PairTransfers peer{&plane, std::chrono::seconds(60)};
  auto operation = std::make_shared<Operation>();
  operation->tag = std::string(1, name);
  operation->set = static_cast<std::uint32_t>(name & 1);
  operation->description.kind = kind;
  operation->description.type = ElementType::kUint8;
  operation->description.shape = {count};
  peer.submit(operation, 0, now());
  std::string all;
  for (const auto& [to, message] : peer.take_messages())
    all += "m" + fuzz::piece(std::string_view(message).substr(sizeof kPairMessages));
  return all;
}

std::string chunk(std::uint64_t number, std::uint64_t bytes) {
  std::string head(reinterpret_cast<const char*>(&number), sizeof number);
  head.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  return "b" + fuzz::piece(head + std::string(bytes, 'x'));
}

}  // namespace

namespace hv::fuzz {

std::vector<std::string> seeds() {
  const std::string offer = peer_messages(CollectiveKind::kSend, 'a', 20);
  const std::string answer{"m\x15\x02\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 23};
  return {std::string("ra\x14") + offer + "a" + chunk(1, 7) + "a" + chunk(1, 13) + "a",
          offer + "ra\x15" + "a" + chunk(1, 7) + "a",
          std::string("sb\x14") + answer + "aaa",
          std::string("ra\x14") + offer + chunk(1, 5) + "ad\x01" + chunk(1, 5) + "a",
          std::string("ra\x14") + offer + chunk(1, 21) + "a",
          std::string("ra\x15") + offer + "d\x01" + "a"};
}

}  // namespace hv::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(fuzz::view(data, size));
  Rank rank;
  bool is_trusted = true;
  while (!input.empty() && is_trusted) {
    const char command = static_cast<char>(input.byte());
    switch (command) {
      case 's':
      case 'r': {
        const bool sends = command == 's';
        const char name = static_cast<char>(input.byte());
        rank.submit(sends ? CollectiveKind::kSend : CollectiveKind::kReceive, name, input.byte());
        break;
      }
      case 'm':
        is_trusted = rank.receive(input.piece());
        break;
      case 'b':
        rank.arrive(input.piece());
        break;
      case 'a':
        is_trusted = rank.advance();
        break;
      case 'd':
        rank.drop(input.byte() & 1);
        break;
      default:
        break;
    }
  }
  return 0;
}
