// Tests of launcher/supervise/hosts/host_link.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/hosts/host_link.h"

#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstring>

using namespace hv;
using namespace hv::launcher;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

// The agent's end of the stream, in the test's hands.
struct Wire {
  std::string to_hvrun;
  bool is_broken = false;
  bool is_closed = false;
  bool refuses_writes = false;
  std::string last_words;
  std::vector<Frame> from_hvrun;
  asio::steady_timer* waker = nullptr;

  void wake() {
    if (waker) waker->cancel();
  }
  void send(const std::string& bytes) {
    to_hvrun += bytes;
    wake();
  }
  template <class Message>
  std::vector<Message> received(wire::Type type) const {
    std::vector<Message> messages;
    for (const Frame& frame : from_hvrun) {
      if (frame.type == static_cast<std::uint8_t>(type))
        REQUIRE(decode(frame.payload, &messages.emplace_back()));
    }
    return messages;
  }
};

class WireChannel : public AgentChannel {
 public:
  WireChannel(Wire& wire, asio::any_io_executor executor) : wire_(wire), timer_(executor) {
    wire_.waker = &timer_;
  }
  ~WireChannel() override { wire_.waker = nullptr; }
  asio::awaitable<std::size_t> read_some(asio::mutable_buffer buffer) override {
    while (wire_.to_hvrun.empty() && !wire_.is_broken && !wire_.is_closed) {
      boost::system::error_code ignored;
      timer_.expires_at(TimePoint::max());
      co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    if (wire_.is_closed || wire_.to_hvrun.empty()) co_return 0;
    const std::size_t size = std::min(buffer.size(), wire_.to_hvrun.size());
    std::memcpy(buffer.data(), wire_.to_hvrun.data(), size);
    wire_.to_hvrun.erase(0, size);
    co_return size;
  }
  asio::awaitable<bool> write(asio::const_buffer buffer) override {
    if (wire_.refuses_writes) co_return false;
    CHECK(parser_.feed({static_cast<const char*>(buffer.data()), buffer.size()}));
    for (Frame frame; parser_.next(&frame);) wire_.from_hvrun.push_back(frame);
    co_return true;
  }
  void close() override {
    wire_.is_closed = true;
    wire_.wake();
  }
  std::string last_words() const override { return wire_.last_words; }

 private:
  Wire& wire_;
  asio::steady_timer timer_;
  FrameParser parser_{wire::kMaxAgentPayload};
};

constexpr LinkId kLink{HostId{7}, 1};

struct Trial : LinkObserver {
  asio::io_context io;
  Wire wire;
  std::vector<int> frames;  // their types
  std::vector<std::string> ends;
  std::shared_ptr<HostLink> link;

  explicit Trial(Duration lost_after = 60s) {
    link = std::make_shared<HostLink>(io.get_executor(), kLink,
                                      std::make_unique<WireChannel>(wire, io.get_executor()),
                                      lost_after, *this);
    link->start();
    settle();
  }
  ~Trial() override {
    link->close();
    io.restart();
    io.run();  // the loops end: none may hang on a closed link
  }
  void on_frame(const LinkId& link_id, Frame frame) override {
    CHECK(link_id == kLink);
    frames.push_back(frame.type);
  }
  void on_link_ended(const LinkId& link_id, std::string reason) override {
    CHECK(link_id == kLink);
    ends.push_back(std::move(reason));
  }
  // Runs what is ready to run.
  void settle() {
    io.restart();
    while (io.poll_one() > 0) {
    }
  }
  // Runs until the link has reported its end.
  void run_to_end() {
    io.restart();
    while (ends.empty() && io.run_one() > 0) {
    }
  }
};

constexpr int kEmpty = static_cast<int>(wire::Type::kEmpty);

}  // namespace

TEST_CASE("frames arrive whole and in order however the stream is cut") {
  const std::string bytes = encode_frame_of(wire::Hello{}) + encode_frame_of(wire::Note{"x"}) +
                            encode_frame_of(wire::Empty{});
  const std::vector<int> sent{static_cast<int>(wire::Type::kHello),
                              static_cast<int>(wire::Type::kNote), kEmpty};
  for (std::size_t chunk = 1; chunk <= bytes.size(); chunk += 3) {
    CAPTURE(chunk);
    Trial trial;
    for (std::size_t at = 0; at < bytes.size(); at += chunk) {
      trial.wire.send(bytes.substr(at, chunk));
      trial.settle();
    }
    CHECK(trial.frames == sent);
    CHECK(trial.ends.empty());
  }
}

TEST_CASE("the link answers a ping with both times") {
  Trial trial;
  trial.wire.send(encode_frame_of(wire::Ping{12345}));
  trial.settle();
  CHECK(trial.frames.empty());
  const auto pongs = trial.wire.received<wire::Pong>(wire::Type::kPong);
  REQUIRE(pongs.size() == 1);
  CHECK(pongs[0].sent_wall_clock_ns == 12345);
  CHECK(std::abs(pongs[0].wall_clock_ns - wall_clock_ns()) < 60'000'000'000);
}

TEST_CASE("the first ping goes out at once, and its answer sets the clock") {
  Trial trial;
  const auto pings = trial.wire.received<wire::Ping>(wire::Type::kPing);
  REQUIRE(pings.size() == 1);
  CHECK(!trial.link->clock().round_trip());
  trial.wire.send(encode_frame_of(wire::Pong{pings[0].wall_clock_ns, 12345}));
  trial.settle();
  REQUIRE(trial.link->clock().round_trip());
  CHECK(std::abs(trial.link->clock().corrected(12345) - wall_clock_ns()) < 60'000'000'000);
}

TEST_CASE("a pong from the future or with nonsense inside does no harm") {
  Trial trial;
  trial.wire.send(encode_frame_of(wire::Pong{INT64_MAX, 0}));
  trial.settle();
  CHECK(trial.ends.empty());
  trial.link->send(wire::Ping{});
  trial.wire.send(encode_frame(static_cast<std::uint8_t>(wire::Type::kPong), "junk"));
  trial.settle();
  REQUIRE(trial.ends.size() == 1);
  CHECK(trial.ends[0] == "its agent broke the protocol (Pong)");
}

TEST_CASE("a stream that breaks ends the link once, with the channel's last words") {
  Trial trial;
  trial.wire.last_words = "ssh: connection reset\n\x1b[2J";
  trial.wire.is_broken = true;
  trial.wire.wake();
  trial.run_to_end();
  trial.settle();
  REQUIRE(trial.ends.size() == 1);
  CHECK(trial.ends[0].find("broke: ssh: connection reset") != std::string::npos);
  CHECK(trial.ends[0].find('\x1b') == std::string::npos);
  CHECK(trial.wire.is_closed);
}

TEST_CASE("frames that an agent sent before its stream broke still arrive") {
  Trial trial;
  trial.wire.refuses_writes = true;
  trial.link->send(wire::Ready{});
  trial.settle();
  CHECK(trial.ends.empty());
  trial.wire.to_hvrun = encode_frame_of(wire::Empty{});
  trial.wire.is_broken = true;
  trial.wire.wake();
  trial.run_to_end();
  CHECK(trial.frames == std::vector<int>{kEmpty});
  CHECK(trial.ends.size() == 1);
}

TEST_CASE("bytes that are no frame end the link") {
  Trial trial;
  trial.wire.send(std::string(1 << 16, '\xff'));
  trial.settle();
  CHECK(trial.ends == std::vector<std::string>{"its agent sent what is no message"});
}

TEST_CASE("an agent that sends nothing for --lost-after is lost") {
  Trial silent(50ms);
  silent.run_to_end();
  CHECK(silent.ends == std::vector<std::string>{"it was silent for 50 ms (--lost-after)"});
  CHECK_FALSE(silent.wire.received<wire::Ping>(wire::Type::kPing).empty());
}

TEST_CASE("an answering agent is never lost, however long the job") {
  Trial trial(50ms);
  std::size_t answered = 0;
  for (const TimePoint end = now() + 300ms; now() < end && trial.ends.empty();) {
    trial.io.restart();
    trial.io.run_one_for(10ms);
    const auto pings = trial.wire.received<wire::Ping>(wire::Type::kPing);
    for (; answered < pings.size(); ++answered)
      trial.wire.send(encode_frame_of(wire::Pong{pings[answered].wall_clock_ns, wall_clock_ns()}));
  }
  CHECK(trial.ends.empty());
  CHECK(answered > 5);
}

TEST_CASE("a link that hvrun closes reports no end and sends nothing more") {
  Trial trial;
  trial.link->send(wire::Ready{});
  trial.settle();
  CHECK(trial.link->is_flushed());
  const std::size_t sent = trial.wire.from_hvrun.size();
  trial.link->close();
  trial.link->send(wire::Empty{});
  trial.settle();
  CHECK(trial.link->has_ended());
  CHECK(trial.wire.from_hvrun.size() == sent);
  CHECK(trial.ends.empty());
}

TEST_CASE("an agent that sends what it may not ends the link, and the reason names it") {
  Trial unasked;
  unasked.wire.send(encode_frame_of(wire::Hello{}) + encode_frame_of(wire::QueryReply{}) +
                    encode_frame_of(wire::Empty{}));
  unasked.settle();
  CHECK(unasked.frames == std::vector<int>{static_cast<int>(wire::Type::kHello)});
  CHECK(unasked.ends ==
        std::vector<std::string>{"its agent sent QueryReply, which hvrun had not asked for"});
  Trial asked;
  asked.link->send(wire::Query{1});
  asked.wire.send(encode_frame_of(wire::QueryReply{}));
  asked.settle();
  CHECK(asked.ends.empty());
}

TEST_CASE("an agent that does not read what hvrun sends loses its link before hvrun its memory") {
  Trial trial;
  wire::Stdin input;
  input.bytes.assign(32 << 20, 'x');
  int sent = 0;
  for (; trial.ends.empty() && sent < 100; ++sent) trial.link->send(input);  // nothing is written
  CHECK(sent == 8);
  REQUIRE(trial.ends.size() == 1);
  CHECK(trial.ends[0] == "its agent does not read what hvrun sends: 224.0 MiB wait");
}
