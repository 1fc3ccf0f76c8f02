// One TCP connection to one peer, proven already, carrying all lanes.
// SPDX-License-Identifier: Apache-2.0
//
// A frame is 8 bytes (kind, lane, zero, length) and, for data, `length` bytes. Each lane has a
// window: the sender may have that many bytes under way that the receiver has not consumed, the
// receiver keeps a ring of that size, and gives room back in credit frames. So data that nobody has
// asked for yet never holds up another lane, and a peer can make this rank keep no more than kLanes
// windows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/transport/transport.h"
#include "src/base/fork_guarded_fd.h"

namespace hv::runtime {

constexpr std::size_t kWindowBytes = 1 << 20;

class TcpLink {
 public:
  explicit TcpLink(ForkGuardedFd socket);
  ~TcpLink();
  TcpLink(const TcpLink&) = delete;
  TcpLink& operator=(const TcpLink&) = delete;

  // -1 once the connection has ended.
  int fd() const { return socket_.get(); }
  Channel& channel(int lane);
  // Takes in all that has arrived; a broken connection changes state().
  void receive();
  // Sends what waits in the queue.
  void flush();
  bool has_unsent() const { return !out_.empty(); }
  bool has_unread_control() const;
  void say_goodbye();
  PeerState state() const { return state_; }
  // Why state() is kSuspect, to stand behind "rank N".
  const std::string& words() const { return words_; }

 private:
  enum class Kind : std::uint8_t { kData = 1, kCredit = 2, kGoodbye = 3 };
  struct Header {
    Kind kind;
    std::uint8_t lane;
    std::uint16_t zero;
    std::uint32_t length;
  };
  static_assert(sizeof(Header) == 8);
  class Lane;

  void send_frame(Kind kind, int lane, const void* payload, std::uint32_t length);
  void queue(const void* bytes, std::size_t size);
  bool receive_once();
  bool feed(const std::byte* bytes, std::size_t size);
  bool take_header();
  void break_off(const std::string& words);

  ForkGuardedFd socket_;
  std::array<std::unique_ptr<Lane>, kLanes> lanes_;
  std::vector<std::byte> out_;
  std::size_t out_sent_ = 0;
  Header header_{};
  std::size_t header_bytes_ = 0;  // of the header that is arriving
  std::size_t payload_left_ = 0;  // of the frame that is arriving
  bool has_peer_left_ = false;
  PeerState state_ = PeerState::kPresent;
  std::string words_;
};

}  // namespace hv::runtime
