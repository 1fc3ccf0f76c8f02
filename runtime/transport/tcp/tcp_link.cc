// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/tcp_link.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "runtime/transport/tcp/arrival_window.h"
#include "src/base/check.h"
#include "src/base/text.h"

namespace hv::runtime {
namespace {

// A written piece of more is cut into frames of so much where there are several streams.
constexpr std::size_t kShareBytes = 64 << 10;
// What a lane queues while all sockets are full.
constexpr std::size_t kQueuedBytes = 64 << 10;
constexpr std::size_t kCacheLineBytes = 64;
// Of arriving bytes: in the memory for which they are meant, and in the ring, round its end.
constexpr int kMostPlaces = 3;
constexpr std::string_view kBrokenWords = "sent a frame that breaks the protocol";
constexpr std::string_view kNoMemoryWords = "was cut off: no memory for what it had sent";
constexpr std::string_view kNoQueueWords = "was cut off: no memory for what it is sent";
// So often a stream is read in one turn: beats and empty frames need no credit, so that a peer
// could send them as fast as they are read.
constexpr int kReadsPerTurn = 16;

std::string lost_by(const char* doing, int errno_value) {
  return std::string("lost its connection (") + doing + ": " + errno_text(errno_value) + ")";
}

}  // namespace

static_assert(ArrivalWindow::kSpan == kWindowBytes);

// Both directions of one lane. What arrives lies in a ring, there once it is needed, or goes
// straight to the memory that receive() was given for it.
class TcpLink::Lane : public Channel {
 public:
  Lane(TcpLink& link, int number) : link_(link), number_(number) {}

  // While the sockets are full each lane queues a little, once, so that none waits for another;
  // more is better kept where it lies than copied. To a peer that is gone every message is "sent":
  // whoever waits for its answer learns of the loss. No more data are, for what sends only would
  // have succeeded by that; those of the write that met the loss are as lost as what lay in the
  // system's buffers, and count as sent as those do.
  std::size_t writable() const override {
    if (link_.state_ != PeerState::kPresent) return number_ == kControlLane ? kWindowBytes : 0;
    if (!link_.is_full()) return credit_;
    return queued_in_ == link_.times_full_ ? 0 : std::min(credit_, kQueuedBytes);
  }

  void write(const void* bytes, std::size_t size) override {
    if (link_.state_ != PeerState::kPresent) return;
    HV_CHECK(size <= credit_, "a lane is written no further than its credit");
    credit_ -= size;
    link_.send_data(number_, bytes, size, sent_);
    sent_ += size;
    if (link_.is_full()) queued_in_ = link_.times_full_;
  }

  std::span<const std::byte> readable() const override {
    HV_CHECK(landing_.empty(), "a lane is read in one way at a time");
    const std::uint64_t ready = window_.ready();
    if (ready == consumed_ || !ring_) return {};  // without a ring: it was lost, and the link too
    const std::size_t at = place_of(consumed_);
    return {ring_.get() + at, std::min<std::size_t>(ready - consumed_, kWindowBytes - at)};
  }

  void consume(std::size_t size) override {
    consumed_ += size;
    owed_ += size;
    if (owed_ < kWindowBytes / 4 || link_.state_ != PeerState::kPresent) return;
    const auto owed = static_cast<std::uint32_t>(owed_);
    link_.send_frame(&link_.idlest_stream(),
                     {Kind::kCredit, 0, static_cast<std::uint16_t>(number_), owed, 0}, nullptr);
    owed_ = 0;
  }

  // Only what arrives at an empty ring may go past it: the order stays that of the lane.
  std::size_t receive(std::byte* into, std::size_t size) override {
    if (!landing_.empty()) {
      HV_CHECK(into == landing_.data() && size == landing_.size(), "receive() goes on");
      const std::size_t landed = std::min<std::size_t>(window_.ready() - consumed_, size);
      landing_ = landing_.subspan(landed);
      consume(landed);
      return landed;
    }
    const std::size_t taken = Channel::receive(into, size);
    if (taken < size && is_empty()) landing_ = {into + taken, size - taken};
    return taken;
  }

  // What has landed and was not taken, behind gaps too, goes where it would lie without receive().
  void withdraw() noexcept override {
    const std::span<std::byte> landed = std::exchange(landing_, {});
    const std::uint64_t end = std::min(consumed_ + landed.size(), window_.end());
    if (end <= consumed_) return;
    if (!ring_) ring_.reset(new (std::nothrow) std::byte[kWindowBytes]);
    if (!ring_) return link_.break_off(kNoMemoryWords);
    put(consumed_, landed.data(), static_cast<std::size_t>(end - consumed_));
  }

  // Frames that are still under way find a new ring.
  void shrink() override {
    if (!is_empty()) return;
    ring_.reset();
    window_.shrink();
  }

  void add_credit(std::size_t bytes) { credit_ += bytes; }
  std::size_t credit() const { return credit_; }

  // Whether a frame may lie there: not before what is whole already, not behind the window.
  bool has_room_for(std::uint64_t position, std::size_t size) const {
    return position >= window_.ready() && position <= consumed_ + kWindowBytes &&
           size <= consumed_ + kWindowBytes - position;
  }
  // Where `size` arriving bytes go, for which there is room, in at most kMostPlaces pieces.
  int places(std::uint64_t position, std::size_t size, iovec* places) {
    int count = 0;
    const std::uint64_t landing_end = consumed_ + landing_.size();
    if (position < landing_end) {
      const std::size_t part = std::min<std::size_t>(size, landing_end - position);
      places[count++] = {landing_.data() + (position - consumed_), part};
      position += part;
      size -= part;
    }
    if (size == 0) return count;
    if (!ring_) ring_.reset(new std::byte[kWindowBytes]);
    if (is_empty()) begin_ = landing_end / kCacheLineBytes * kCacheLineBytes;
    const std::size_t at = place_of(position);
    const std::size_t first = std::min(size, kWindowBytes - at);
    places[count++] = {ring_.get() + at, first};
    if (first < size) places[count++] = {ring_.get(), size - first};
    return count;
  }
  void put(std::uint64_t position, const std::byte* bytes, std::size_t size) {
    iovec parts[kMostPlaces];
    const int count = places(position, size, parts);
    for (int i = 0; i < count; ++i) {
      std::memcpy(parts[i].iov_base, bytes, parts[i].iov_len);
      bytes += parts[i].iov_len;
    }
  }
  bool has_landing() const { return !landing_.empty(); }
  void arrived(std::uint64_t position, std::size_t size) { window_.add(position, position + size); }

 private:
  bool is_empty() const { return window_.ready() == consumed_ && window_.is_whole(); }
  std::size_t place_of(std::uint64_t position) const {
    return static_cast<std::size_t>(position - begin_) % kWindowBytes;
  }

  TcpLink& link_;
  const int number_;
  std::size_t credit_ = kWindowBytes;
  std::uint64_t sent_ = 0;
  std::uint64_t queued_in_ = 0;  // of link_.times_full_: when this lane last queued something
  std::unique_ptr<std::byte[]> ring_;
  // The position that lies at the ring's beginning: an empty ring begins anew, so that what is
  // small always comes into the same, cached memory. Of whole cache lines: the ring's end cuts no
  // word, and elements lie in memory as they do in the lane.
  std::uint64_t begin_ = 0;
  ArrivalWindow window_;
  std::uint64_t consumed_ = 0;
  std::span<std::byte> landing_{};  // for the bytes from consumed_ on; empty: for none
  std::size_t owed_ = 0;            // consumed and not yet given back
};

TcpLink::TcpLink(std::vector<ForkGuardedFd> streams, std::function<void(int)> on_waiting)
    : on_waiting_(std::move(on_waiting)), pair_lane_(std::make_unique<Lane>(*this, kPairLane)) {
  HV_CHECK(!streams.empty(), "a peer has a connection");
  words_.reserve(std::max(kNoMemoryWords.size(), kNoQueueWords.size()));
  for (ForkGuardedFd& socket : streams) {
    streams_.emplace_back();
    streams_.back().socket = std::move(socket);
  }
  for (int lane = 0; lane <= kLanesPerSet; ++lane) channel(lane);
}

TcpLink::~TcpLink() = default;

int TcpLink::fd(int stream) const {
  return streams_[static_cast<std::size_t>(stream)].socket.get();
}

Channel& TcpLink::channel(int lane) {
  if (lane == kPairLane) return *pair_lane_;
  HV_CHECK(lane >= 0 && lane <= kMostSets * kLanesPerSet, "a lane's number fits its field");
  const auto number = static_cast<std::size_t>(lane);
  if (number >= lanes_.size()) lanes_.resize(number + 1);
  if (!lanes_[number]) lanes_[number] = std::make_unique<Lane>(*this, lane);
  return *lanes_[number];
}

TcpLink::Lane* TcpLink::open_lane(int number) {
  if (number == kPairLane) return pair_lane_.get();
  const auto index = static_cast<std::size_t>(number);
  return index < lanes_.size() ? lanes_[index].get() : nullptr;
}

bool TcpLink::has_unread_control() const { return !lanes_[kControlLane]->readable().empty(); }

bool TcpLink::has_unsent(int stream) const {
  return streams_[static_cast<std::size_t>(stream)].unsent() > 0;
}

bool TcpLink::has_unsent() const {
  return std::any_of(streams_.begin(), streams_.end(),
                     [](const Stream& stream) { return stream.unsent() > 0; });
}

// The first, from the one whose turn it is, that has the least unsent.
TcpLink::Stream& TcpLink::idlest_stream() {
  std::size_t best = turn_;
  for (std::size_t i = 1; i < streams_.size() && streams_[best].unsent() > 0; ++i) {
    const std::size_t other = (turn_ + i) % streams_.size();
    if (streams_[other].unsent() < streams_[best].unsent()) best = other;
  }
  return streams_[best];
}

void TcpLink::send_data(int lane, const void* bytes, std::size_t size, std::uint64_t position) {
  const auto* from = static_cast<const std::byte*>(bytes);
  const std::size_t share = streams_.size() > 1 ? kShareBytes : kWindowBytes;
  while (size > 0 && state_ == PeerState::kPresent) {
    const std::size_t part = std::min(size, share);
    send_frame(&idlest_stream(),
               {Kind::kData, 0, static_cast<std::uint16_t>(lane), static_cast<std::uint32_t>(part),
                position},
               from);
    if (part == kShareBytes) turn_ = (turn_ + 1) % streams_.size();
    from += part;
    position += part;
    size -= part;
  }
}

// Straight to the socket while nothing waits; what it does not take is queued.
void TcpLink::send_frame(Stream* stream, const Header& header, const void* payload) {
  const std::size_t size = header.kind == Kind::kData ? header.length : 0;
  std::size_t sent = 0;
  if (stream->unsent() == 0) {
    iovec pieces[2] = {{const_cast<Header*>(&header), sizeof header},
                       {const_cast<void*>(payload), size}};
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = size > 0 ? 2 : 1;
    const ssize_t got = ::sendmsg(stream->socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (got < 0 && errno != EAGAIN && errno != EINTR) return lose(stream, lost_by("send", errno));
    sent = got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  const std::size_t unsent = stream->unsent();
  try {
    if (sent < sizeof header)
      queue(stream, reinterpret_cast<const std::byte*>(&header) + sent, sizeof header - sent);
    const std::size_t of_payload = sent > sizeof header ? sent - sizeof header : 0;
    if (of_payload < size)
      queue(stream, static_cast<const std::byte*>(payload) + of_payload, size - of_payload);
  } catch (const std::bad_alloc&) {
    stream->out.resize(stream->out_sent + unsent);  // it shrinks
    // Else the peer would take what comes next for the rest of the frame.
    if (sent > 0) break_off(kNoQueueWords);
    throw;
  }
  look_whether_full();
}

void TcpLink::look_whether_full() {
  const bool was_full = is_full_;
  is_full_ = std::all_of(streams_.begin(), streams_.end(),
                         [](const Stream& stream) { return stream.unsent() > 0; });
  if (is_full_ && !was_full) ++times_full_;
}

void TcpLink::queue(Stream* stream, const void* bytes, std::size_t size) {
  const auto* from = static_cast<const std::byte*>(bytes);
  const bool begins = stream->unsent() == 0;
  // What is sent already may not pile up in front of a queue that never runs empty.
  if (stream->out_sent > kWindowBytes) {
    stream->out.erase(stream->out.begin(),
                      stream->out.begin() + static_cast<std::ptrdiff_t>(stream->out_sent));
    stream->out_sent = 0;
  }
  stream->out.insert(stream->out.end(), from, from + size);
  if (begins && on_waiting_) on_waiting_(static_cast<int>(stream - streams_.data()));
}

void TcpLink::flush(int number) {
  Stream& stream = streams_[static_cast<std::size_t>(number)];
  while (stream.unsent() > 0 && stream.socket) {
    const ssize_t got = ::send(stream.socket.get(), stream.out.data() + stream.out_sent,
                               stream.unsent(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got < 0) return lose(&stream, lost_by("send", errno));
    stream.out_sent += static_cast<std::size_t>(got);
  }
  stream.out.clear();
  stream.out_sent = 0;
  look_whether_full();
}

void TcpLink::receive(int number) {
  Stream& stream = streams_[static_cast<std::size_t>(number)];
  int reads = 0;
  while (stream.socket && reads++ < kReadsPerTurn && receive_once(&stream)) {
  }
}

// Payload goes from the socket to its place; whatever follows comes along through a small buffer.
// False when there is no more: the end of a frame, and of what had come so far.
bool TcpLink::receive_once(Stream* stream) {
  std::byte extra[8192];
  iovec places[kMostPlaces + 1];
  int count = 0;
  Lane* lane = nullptr;
  if (stream->payload_left > 0) {
    lane = payload_lane(*stream);
    if (lane == nullptr) return false;
    count = lane->places(stream->position, stream->payload_left, places);
  }
  places[count++] = {extra, sizeof extra};
  std::size_t room = 0;
  for (int i = 0; i < count; ++i) room += places[i].iov_len;
  const ssize_t got = ::readv(stream->socket.get(), places, count);
  if (got < 0) return goes_on_after(errno, stream, lane);
  if (got == 0) {
    lose(stream, "closed its connection");
    return false;
  }
  has_heard_ = true;
  const std::size_t direct = std::min(static_cast<std::size_t>(got), stream->payload_left);
  if (direct > 0) {
    lane->arrived(stream->position, direct);
    stream->position += direct;
    stream->payload_left -= direct;
  }
  const bool is_fed = feed(stream, extra, static_cast<std::size_t>(got) - direct);
  const bool is_between_frames = stream->payload_left == 0 && stream->header_bytes == 0;
  return is_fed && (static_cast<std::size_t>(got) == room || !is_between_frames);
}

// Where the rest of a frame goes. nullptr, and the link is broken off: some of it has come before,
// over another stream.
TcpLink::Lane* TcpLink::payload_lane(const Stream& stream) {
  Lane* const lane = open_lane(stream.header.lane);
  if (lane->has_room_for(stream.position, stream.payload_left)) return lane;
  break_off(kBrokenWords);
  return nullptr;
}

bool TcpLink::goes_on_after(int error, Stream* stream, Lane* lane) {
  if (error == EINTR) return true;
  if (error == EAGAIN) return false;
  if (error == EFAULT && lane != nullptr && lane->has_landing()) {
    // That this rank's operation has memory that cannot be written to is no fault of the peer's: a
    // copy to it will tell, in this process.
    lane->withdraw();
    return true;
  }
  lose(stream, lost_by("receive", error));
  return false;
}

bool TcpLink::feed(Stream* stream, const std::byte* bytes, std::size_t size) {
  while (size > 0) {
    std::size_t part = 0;
    if (stream->payload_left > 0) {
      part = std::min(size, stream->payload_left);
      Lane* const lane = open_lane(stream->header.lane);
      lane->put(stream->position, bytes, part);
      lane->arrived(stream->position, part);
      stream->position += part;
      stream->payload_left -= part;
    } else {
      part = std::min(size, sizeof stream->header - stream->header_bytes);
      std::memcpy(reinterpret_cast<std::byte*>(&stream->header) + stream->header_bytes, bytes,
                  part);
      stream->header_bytes += part;
      if (stream->header_bytes == sizeof stream->header && !take_header(stream)) return false;
    }
    bytes += part;
    size -= part;
  }
  return true;
}

// Acts on a whole header; false, and the link is broken off, when it breaks the rules.
bool TcpLink::take_header(Stream* stream) {
  const Header& header = stream->header;
  stream->header_bytes = 0;
  Lane* const lane = open_lane(header.lane);
  if (header.kind == Kind::kData && lane && lane->has_room_for(header.position, header.length)) {
    stream->payload_left = header.length;
    stream->position = header.position;
    return true;
  }
  if (header.kind == Kind::kCredit && lane && header.length <= kWindowBytes - lane->credit()) {
    lane->add_credit(header.length);
    return true;
  }
  if (header.kind == Kind::kGoodbye) {
    take_goodbye(stream);
    return true;
  }
  if (header.kind == Kind::kBeat) return true;
  break_off(kBrokenWords);
  return false;
}

// The peer has left once it has said so on every stream: then nothing of it is under way any more.
void TcpLink::take_goodbye(Stream* stream) {
  stream->has_said_goodbye = true;
  if (std::all_of(streams_.begin(), streams_.end(),
                  [](const Stream& each) { return each.has_said_goodbye; }))
    state_ = PeerState::kLeft;
}

void TcpLink::send_beat() {
  if (state_ == PeerState::kPresent && !has_unsent())
    send_frame(&streams_.front(), {Kind::kBeat, 0, 0, 0, 0}, nullptr);
}

bool TcpLink::take_heard() {
  const bool heard = has_heard_;
  has_heard_ = false;
  return heard;
}

void TcpLink::say_goodbye() {
  for (Stream& stream : streams_)
    if (stream.socket) send_frame(&stream, {Kind::kGoodbye, 0, 0, 0, 0}, nullptr);
}

// An end after a goodbye is no loss.
void TcpLink::lose(Stream* stream, std::string_view words) {
  if (!stream->has_said_goodbye) return break_off(words);
  stream->socket.reset();
  stream->out.clear();
  stream->out_sent = 0;
}

void TcpLink::break_off(std::string_view words) {
  for (Stream& stream : streams_) {
    stream.socket.reset();
    stream.out.clear();
    stream.out_sent = 0;
  }
  if (state_ == PeerState::kLeft) return;
  state_ = PeerState::kSuspect;
  words_ = words;
}

}  // namespace hv::runtime
