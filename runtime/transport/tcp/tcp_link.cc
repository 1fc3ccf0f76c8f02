// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp_link.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "src/base/check.h"
#include "src/base/text.h"

namespace hv::runtime {
namespace {

std::string lost_by(const char* doing, int errno_value) {
  return std::string("lost its connection (") + doing + ": " + errno_text(errno_value) + ")";
}

}  // namespace

// Both directions of one lane. The ring exists once something has arrived.
class TcpLink::Lane : public Channel {
 public:
  Lane(TcpLink& link, int number) : link_(link), number_(number) {}

  // To a peer that is gone everything is "sent": whoever waits for its answer learns of the loss.
  std::size_t writable() const override {
    return link_.state_ == PeerState::kPresent ? credit_ : kWindowBytes;
  }

  void write(const void* bytes, std::size_t size) override {
    if (link_.state_ != PeerState::kPresent) return;
    HV_CHECK(size <= credit_, "a lane is written no further than its credit");
    credit_ -= size;
    link_.send_frame(Kind::kData, number_, bytes, static_cast<std::uint32_t>(size));
  }

  std::span<const std::byte> readable() const override {
    if (written_ == consumed_) return {};
    const std::size_t at = consumed_ % kWindowBytes;
    return {ring_.get() + at, std::min<std::size_t>(written_ - consumed_, kWindowBytes - at)};
  }

  void consume(std::size_t size) override {
    consumed_ += size;
    owed_ += size;
    if (owed_ < kWindowBytes / 4 || link_.state_ != PeerState::kPresent) return;
    link_.send_frame(Kind::kCredit, number_, nullptr, static_cast<std::uint32_t>(owed_));
    owed_ = 0;
  }

  std::size_t room() const { return kWindowBytes - static_cast<std::size_t>(written_ - consumed_); }
  void add_credit(std::size_t bytes) { credit_ += bytes; }
  std::size_t credit() const { return credit_; }

  // Where the next `size` arriving bytes go, in at most two pieces.
  int places(std::size_t size, iovec* places) {
    if (!ring_) ring_.reset(new std::byte[kWindowBytes]);
    const std::size_t at = written_ % kWindowBytes;
    const std::size_t first = std::min(size, kWindowBytes - at);
    places[0] = {ring_.get() + at, first};
    if (first == size) return 1;
    places[1] = {ring_.get(), size - first};
    return 2;
  }
  void arrived(std::size_t size) { written_ += size; }

 private:
  TcpLink& link_;
  const int number_;
  std::size_t credit_ = kWindowBytes;
  std::unique_ptr<std::byte[]> ring_;
  std::uint64_t written_ = 0, consumed_ = 0;
  std::size_t owed_ = 0;  // consumed and not yet given back
};

TcpLink::TcpLink(ForkGuardedFd socket) : socket_(std::move(socket)) {
  for (int lane = 0; lane < kLanes; ++lane)
    lanes_[static_cast<std::size_t>(lane)] = std::make_unique<Lane>(*this, lane);
}

TcpLink::~TcpLink() = default;

Channel& TcpLink::channel(int lane) { return *lanes_[static_cast<std::size_t>(lane)]; }

bool TcpLink::has_unread_control() const { return !lanes_[kControlLane]->readable().empty(); }

// Straight to the socket while nothing waits; what it does not take is queued.
void TcpLink::send_frame(Kind kind, int lane, const void* payload, std::uint32_t length) {
  Header header{kind, static_cast<std::uint8_t>(lane), 0, length};
  const std::size_t size = kind == Kind::kData ? length : 0;
  std::size_t sent = 0;
  if (out_.empty()) {
    iovec pieces[2] = {{&header, sizeof header}, {const_cast<void*>(payload), size}};
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = size > 0 ? 2 : 1;
    const ssize_t got = ::sendmsg(fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (got < 0 && errno != EAGAIN && errno != EINTR) return break_off(lost_by("send", errno));
    sent = got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  if (sent < sizeof header)
    queue(reinterpret_cast<const std::byte*>(&header) + sent, sizeof header - sent);
  const std::size_t of_payload = sent > sizeof header ? sent - sizeof header : 0;
  if (of_payload < size)
    queue(static_cast<const std::byte*>(payload) + of_payload, size - of_payload);
}

void TcpLink::queue(const void* bytes, std::size_t size) {
  const auto* from = static_cast<const std::byte*>(bytes);
  // What is sent already may not pile up in front of a queue that never runs empty.
  if (out_sent_ > kWindowBytes) {
    out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(out_sent_));
    out_sent_ = 0;
  }
  out_.insert(out_.end(), from, from + size);
}

void TcpLink::flush() {
  while (out_sent_ < out_.size() && socket_) {
    const ssize_t got =
        ::send(fd(), out_.data() + out_sent_, out_.size() - out_sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got < 0) return break_off(lost_by("send", errno));
    out_sent_ += static_cast<std::size_t>(got);
  }
  out_.clear();
  out_sent_ = 0;
}

void TcpLink::receive() {
  while (socket_ && receive_once()) {
  }
}

// Payload goes from the socket to its ring; whatever follows it comes along through a small buffer.
bool TcpLink::receive_once() {
  std::byte extra[8192];
  iovec places[3];
  int count = 0;
  if (payload_left_ > 0) count = lanes_[header_.lane]->places(payload_left_, places);
  places[count++] = {extra, sizeof extra};
  const ssize_t got = ::readv(fd(), places, count);
  if (got < 0) {
    if (errno == EAGAIN) return false;
    if (errno != EINTR) break_off(lost_by("receive", errno));
    return errno == EINTR;
  }
  if (got == 0) {
    break_off("closed its connection");
    return false;
  }
  const std::size_t direct = std::min(static_cast<std::size_t>(got), payload_left_);
  if (direct > 0) {
    lanes_[header_.lane]->arrived(direct);
    payload_left_ -= direct;
  }
  return feed(extra, static_cast<std::size_t>(got) - direct);
}

bool TcpLink::feed(const std::byte* bytes, std::size_t size) {
  while (size > 0) {
    std::size_t part = 0;
    if (payload_left_ > 0) {
      part = std::min(size, payload_left_);
      iovec places[2];
      const int count = lanes_[header_.lane]->places(part, places);
      std::memcpy(places[0].iov_base, bytes, places[0].iov_len);
      if (count == 2) std::memcpy(places[1].iov_base, bytes + places[0].iov_len, places[1].iov_len);
      lanes_[header_.lane]->arrived(part);
      payload_left_ -= part;
    } else {
      part = std::min(size, sizeof header_ - header_bytes_);
      std::memcpy(reinterpret_cast<std::byte*>(&header_) + header_bytes_, bytes, part);
      header_bytes_ += part;
      if (header_bytes_ == sizeof header_ && !take_header()) return false;
    }
    bytes += part;
    size -= part;
  }
  return true;
}

// Acts on a whole header; false, and the link is broken off, when it breaks the rules.
bool TcpLink::take_header() {
  header_bytes_ = 0;
  const bool is_lane = header_.lane < kLanes;
  if (header_.kind == Kind::kData && is_lane && header_.length <= lanes_[header_.lane]->room()) {
    payload_left_ = header_.length;
    return true;
  }
  if (header_.kind == Kind::kCredit && is_lane &&
      header_.length <= kWindowBytes - lanes_[header_.lane]->credit()) {
    lanes_[header_.lane]->add_credit(header_.length);
    return true;
  }
  if (header_.kind == Kind::kGoodbye) {
    has_peer_left_ = true;
    state_ = PeerState::kLeft;
    return true;
  }
  break_off("sent a frame that breaks the protocol");
  return false;
}

void TcpLink::say_goodbye() {
  if (socket_) send_frame(Kind::kGoodbye, 0, nullptr, 0);
}

void TcpLink::break_off(const std::string& words) {
  socket_.reset();
  out_.clear();
  out_sent_ = 0;
  if (has_peer_left_) return;
  state_ = PeerState::kSuspect;
  words_ = words;
}

}  // namespace hv::runtime
