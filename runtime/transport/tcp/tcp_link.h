// The connections to one peer, proven already, carrying all lanes.
// SPDX-License-Identifier: Apache-2.0
//
// A frame is 16 bytes (kind, zero, lane, length, position) and, for data, `length` bytes. Each lane
// has a window: the sender may have that many bytes under way that the receiver has not consumed;
// the receiver keeps a ring of that size for what nobody waits for yet, and gives room back in
// credit frames. So data that nobody has asked for yet never holds up another lane, and a peer can
// make this rank keep no more than a window for each lane that is open here, and an eighth of that
// for what it sends out of order.
//
// With several streams (HVRUN_STREAMS) each frame goes over one of them, the one with the least
// unsent; what is written in large pieces is cut, so that all have a share. The position tells
// where in its lane a frame's first byte lies: frames of different streams may overtake each other,
// and a lane becomes readable as far as nothing is missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/transport/transport.h"
#include "src/base/fork_guarded_fd.h"

namespace hv::runtime {

constexpr std::size_t kWindowBytes = 1 << 20;

class TcpLink {
 public:
  // streams: at least one, connected and non-blocking. on_waiting: called with a stream's number
  // whenever bytes begin to wait for room in its socket.
  explicit TcpLink(std::vector<ForkGuardedFd> streams, std::function<void(int)> on_waiting = {});
  ~TcpLink();
  TcpLink(const TcpLink&) = delete;
  TcpLink& operator=(const TcpLink&) = delete;

  int streams() const { return static_cast<int>(streams_.size()); }
  // -1 once that connection has ended.
  int fd(int stream) const;
  // Opens the lane if it is not.
  Channel& channel(int lane);
  // Takes in what has arrived, or as much of it as one turn may take, so that no peer keeps this
  // rank in here; the socket stays readable then. A broken connection changes state().
  void receive(int stream);
  // Sends what waits in the queue.
  void flush(int stream);
  bool has_unsent(int stream) const;
  bool has_unsent() const;
  bool has_unread_control() const;
  // A sign of life, unless bytes wait to be sent anyway.
  void send_beat();
  // Whether anything has come from the peer since the last call.
  bool take_heard();
  void say_goodbye();
  PeerState state() const { return state_; }
  // Why state() is kSuspect, to stand behind "rank N".
  const std::string& words() const { return words_; }

 private:
  enum class Kind : std::uint8_t { kData = 1, kCredit = 2, kGoodbye = 3, kBeat = 4 };
  struct Header {
    Kind kind;
    std::uint8_t zero;
    std::uint16_t lane;
    std::uint32_t length;
    std::uint64_t position;
  };
  static_assert(sizeof(Header) == 16);
  class Lane;
  // One connection: what waits to be sent, and the frame that is arriving.
  struct Stream {
    ForkGuardedFd socket{};
    std::vector<std::byte> out{};
    std::size_t out_sent = 0;
    Header header{};
    std::size_t header_bytes = 0;  // of the header that is arriving
    std::size_t payload_left = 0;  // of the frame that is arriving
    std::uint64_t position = 0;    // in the lane, of the payload's next byte
    bool has_said_goodbye = false;
    std::size_t unsent() const { return out.size() - out_sent; }
  };

  void send_data(int lane, const void* bytes, std::size_t size, std::uint64_t position);
  void send_frame(Stream* stream, const Header& header, const void* payload);
  void queue(Stream* stream, const void* bytes, std::size_t size);
  Stream& idlest_stream();
  // Something waits for each of the sockets.
  bool is_full() const { return is_full_; }
  void look_whether_full();
  bool receive_once(Stream* stream);
  Lane* payload_lane(const Stream& stream);
  bool goes_on_after(int error, Stream* stream, Lane* lane);
  bool feed(Stream* stream, const std::byte* bytes, std::size_t size);
  bool take_header(Stream* stream);
  void take_goodbye(Stream* stream);
  Lane* open_lane(int number);  // nullptr: it is not open here
  void lose(Stream* stream, std::string_view words);
  void break_off(std::string_view words);

  std::vector<Stream> streams_;
  const std::function<void(int)> on_waiting_;
  std::size_t turn_ = 0;  // the stream that is asked first
  bool is_full_ = false;
  std::uint64_t times_full_ = 0;              // counts from 1
  std::vector<std::unique_ptr<Lane>> lanes_;  // by number
  std::unique_ptr<Lane> pair_lane_;           // kPairLane
  bool has_heard_ = false;
  PeerState state_ = PeerState::kPresent;
  std::string words_;
};

}  // namespace hv::runtime
