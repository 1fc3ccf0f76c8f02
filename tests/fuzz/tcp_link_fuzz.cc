// The connections to one peer whose other ends send any bytes. The first byte says how many there
// are, 1 to 4; what follows are pieces, each behind a byte for its connection and for how lane 2 is
// read, and one for its length.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp_link.h"

#include <sys/socket.h>

#include <memory>

#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::runtime;

namespace {

std::string frame(unsigned char kind, std::uint16_t lane, std::uint32_t length,
                  std::uint64_t position = 0) {
  std::string bytes{static_cast<char>(kind), 0};
  bytes.append(reinterpret_cast<const char*>(&lane), sizeof lane);
  bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
  return bytes.append(reinterpret_cast<const char*>(&position), sizeof position);
}

// A piece for a connection.
std::string on(int stream, const std::string& bytes) {
  return static_cast<char>(stream) + fuzz::piece(bytes);
}

constexpr int kLandingLane = 2;

// What a rank keeps on that lane for the bytes that come: memory of any size, for as long as it
// likes.
class Landing {
 public:
  explicit Landing(Channel& lane) : lane_(lane) {}

  std::size_t step(std::uint8_t wish) {
    if (wish & 0x80) {
      lane_.withdraw();
      memory_.reset();
    }
    if (!memory_) {
      size_ = std::size_t{1} << (wish >> 2) % 21;
      memory_ = std::make_unique<std::byte[]>(size_);
      taken_ = 0;
    }
    const std::size_t part = lane_.receive(memory_.get() + taken_, size_ - taken_);
    HV_CHECK(part <= size_ - taken_, "no more than was asked for");
    taken_ += part;
    if (taken_ == size_) memory_.reset();
    return part;
  }

 private:
  Channel& lane_;
  std::unique_ptr<std::byte[]> memory_;  // of that size: whatever lies behind it is nobody's
  std::size_t size_ = 0, taken_ = 0;
};

// Reads all other lanes, as collectives do; half of what is there, so that rings wrap and fill.
std::size_t read_some(TcpLink& link) {
  std::size_t total = 0;
  for (int lane = 0; lane <= kLanesPerSet + 1; ++lane) {
    Channel& channel = link.channel(lane <= kLanesPerSet ? lane : kPairLane);
    if (lane == kLandingLane) continue;
    const std::size_t size = channel.readable().size();
    HV_CHECK(size <= kWindowBytes, "no more than a window");
    total += (size + 1) / 2;
    channel.consume((size + 1) / 2);
    HV_CHECK(channel.writable() <= kWindowBytes, "credit within the window");
    if (lane % 3 == 0 && channel.writable() >= 3) channel.write("abc", 3);
  }
  return total;
}

}  // namespace

namespace hv::fuzz {

std::vector<std::string> seeds() {
  const std::string one(1, 0), two(1, 1), four(1, 3);
  return {one + on(0, frame(1, 0, 5) + "hello" + frame(1, 8, 3) + "abc" + frame(3, 0, 0)),
          one + on(0, frame(2, 1, 1) + frame(1, 2, 1 << 20) + std::string(200, 'x')) +
              on(0, std::string(100, 'x')),
          one + on(0, frame(3, 0, 0)) + on(0, frame(1, 1, 1) + "x"),
          one + on(0, frame(1, 9, 1) + "x"),
          one + on(0, frame(1, 2, 2, 3) + "de" + frame(1, 2, 3, 0) + "abc" + frame(4, 0, 0)),
          one + on(0, frame(1, kPairLane, 3) + "abc" + frame(2, kPairLane, 1)),
          // The later bytes of a lane come first, over another connection.
          two + on(1, frame(1, 2, 2, 3) + "de") + on(0, frame(1, 2, 3) + "abc") +
              on(0, frame(3, 0, 0)) + on(1, frame(3, 0, 0)),
          // A frame that is begun on one connection, while others go on.
          four + on(2, frame(1, 1, 6) + "abc") + on(3, frame(1, 1, 3, 6) + "ghi") +
              on(1, frame(4, 0, 0)) + on(2, "def") + on(0, frame(3, 0, 0)),
          // A part of a frame's bytes comes over another connection first.
          two + on(0, frame(1, 2, 4)) + on(1, frame(1, 2, 2) + "ab") + on(0, "ABCD"),
          // The same bytes twice.
          two + on(0, frame(1, 0, 3) + "abc") + on(1, frame(1, 0, 3) + "abc")};
}

}  // namespace hv::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(fuzz::view(data, size));
  const std::size_t count = 1 + input.byte() % 4;
  std::vector<UniqueFd> peer;
  std::vector<ForkGuardedFd> streams;
  for (std::size_t i = 0; i < count; ++i) {
    int fds[2];
    HV_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0,
             "a pair");
    streams.emplace_back(UniqueFd(fds[0]));
    peer.emplace_back(fds[1]);
  }
  TcpLink link(std::move(streams));
  Landing landing(link.channel(kLandingLane));
  std::size_t sent = 0, read = 0;
  while (!input.empty() && link.state() != PeerState::kSuspect) {
    const std::uint8_t choice = input.byte();
    const std::size_t stream = choice % count;
    const std::string_view bytes = input.piece();
    const ssize_t got = ::send(peer[stream].get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (got < 0) break;  // the link has hung up
    sent += static_cast<std::size_t>(got);
    link.receive(static_cast<int>(stream));
    for (std::size_t i = 0; i < count; ++i) link.flush(static_cast<int>(i));
    read += read_some(link) + landing.step(choice);
  }
  HV_CHECK(read <= sent, "nothing is read that was not sent");
  peer.clear();
  for (std::size_t i = 0; i < count; ++i) link.receive(static_cast<int>(i));
  HV_CHECK(link.state() != PeerState::kPresent, "the end of the connections is seen");
  HV_CHECK(link.state() == PeerState::kLeft || !link.words().empty(), "and told in words");
  return 0;
}
