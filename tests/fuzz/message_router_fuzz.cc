// Control messages cut out of a peer's bytes, in pieces of what the first byte says.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/message_router.h"

#include <algorithm>

#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::runtime;

namespace {

// A channel on which a peer's bytes arrive in steps, and that swallows what is written.
class ScriptedTransport : public Transport, public Channel {
 public:
  ScriptedTransport(std::string_view bytes, std::size_t step) : rest_(bytes), step_(step) {}
  const std::vector<int>& peers() const override { return peers_; }
  Channel& channel(int, int) override { return *this; }
  void progress() override {}
  bool next_arrival(int* peer) override {
    *peer = 1;
    return std::exchange(has_arrival_, false);
  }
  PeerState state(int) const override { return PeerState::kPresent; }
  std::string suspicion(int) const override { return {}; }
  bool has_unsent() const override { return false; }
  void say_goodbye() override {}

  std::size_t writable() const override { return 1 << 20; }
  void write(const void*, std::size_t) override {}
  std::span<const std::byte> readable() const override {
    return std::as_bytes(std::span(rest_.data(), std::min(step_, rest_.size())));
  }
  void consume(std::size_t size) override { rest_.remove_prefix(size); }
  void shrink() override {}

 private:
  std::string_view rest_;
  std::size_t step_;
  bool has_arrival_ = true;
  std::vector<int> peers_{1};
};

std::string framed(const std::string& message) {
  const auto length = static_cast<std::uint32_t>(message.size());
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + message;
}

}  // namespace

namespace hv::fuzz {

std::vector<std::string> seeds() {
  return {"\x05" + framed("one") + framed("") + framed(std::string(200, 'x')),
          "\xff" + framed("one") + "\xff\xff\xff\xff rest"};
}

}  // namespace hv::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(fuzz::view(data, size));
  const std::size_t step = 1 + input.byte();
  const std::string_view stream = input.rest();
  bool is_garbage = false;
  ScriptedTransport transport(stream, step);
  MessageRouter router(0, 2, [&](int rank, const std::string& reason) {
    HV_CHECK(rank == 1 && !reason.empty(), "the peer is named, with a reason");
    is_garbage = true;
  });
  router.add(transport);
  std::string again;
  int from = -1;
  std::string message;
  while (router.receive(&from, &message)) {
    HV_CHECK(from == 1 && message.size() <= Messenger::kMaxMessageBytes, "a message of the peer");
    again += framed(message);
  }
  HV_CHECK(stream.substr(0, again.size()) == again, "messages are what they are framed to");
  const std::string_view rest = stream.substr(again.size());
  std::uint32_t length = 0;
  if (rest.size() >= sizeof length) std::memcpy(&length, rest.data(), sizeof length);
  HV_CHECK(is_garbage == (length > Messenger::kMaxMessageBytes), "an impossible length is told");
  return 0;
}
