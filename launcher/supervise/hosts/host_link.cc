// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/hosts/host_link.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "src/base/text.h"
#include "src/wire/wipe.h"

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kReadBytes = 256 << 10;

std::string describe_exception(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an unknown error";
  }
}

// An agent's clock may say anything: the difference wraps instead of being undefined.
std::int64_t difference(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

}  // namespace

HostLink::HostLink(asio::any_io_executor executor, const LinkId& id,
                   std::unique_ptr<AgentChannel> channel, Duration lost_after,
                   LinkObserver& observer)
    : executor_(std::move(executor)),
      id_(id),
      channel_(std::move(channel)),
      lost_after_(lost_after),
      observer_(observer),
      parser_(wire::kMaxAgentPayload),
      last_heard_(now()),
      work_(executor_),
      heartbeat_(executor_) {}

void HostLink::start() {
  // Each loop keeps the link alive until it is through.
  const auto self = shared_from_this();
  const auto ended = [self](std::exception_ptr error) {
    if (error) self->end("hvrun could not go on with it: " + describe_exception(error));
  };
  asio::co_spawn(
      executor_, [self]() { return self->read_loop(); }, ended);
  asio::co_spawn(
      executor_, [self]() { return self->write_loop(); }, ended);
  asio::co_spawn(
      executor_, [self]() { return self->heartbeat_loop(); }, ended);
}

void HostLink::queue(std::string frame) {
  if (ended_) return;
  // It may hold the job's key.
  append_secret(&outgoing_, frame);
  wipe(&frame);
  work_.cancel();
}

void HostLink::close() {
  if (ended_) return;
  ended_ = true;
  work_.cancel();
  heartbeat_.cancel();
  channel_->close();
}

void HostLink::end(const std::string& reason) {
  if (ended_) return;
  close();
  observer_.on_link_ended(id_, reason);
}

std::int64_t HostLink::corrected(std::int64_t agent_wall_clock_ns) const {
  return difference(agent_wall_clock_ns, clock_offset_ns_);
}

void HostLink::note_clock(std::int64_t agent_wall_clock_ns, std::int64_t round_trip_ns) {
  // The shortest round trip tells the difference best.
  if (round_trip_ns > best_round_trip_ns_) return;
  best_round_trip_ns_ = round_trip_ns;
  const std::int64_t way_back_ns = round_trip_ns == kUnknownRoundTrip ? 0 : round_trip_ns / 2;
  clock_offset_ns_ = difference(agent_wall_clock_ns, wall_clock_ns() - way_back_ns);
}

bool HostLink::take_frames() {
  Frame frame;
  while (!ended_ && parser_.next(&frame)) {
    if (frame.type == static_cast<std::uint8_t>(wire::Type::kPing)) {
      wire::Ping ping;
      if (!decode(frame.payload, &ping)) return false;
      send(wire::Pong{ping.wall_clock_ns, wall_clock_ns()});
    } else if (frame.type == static_cast<std::uint8_t>(wire::Type::kPong)) {
      wire::Pong pong;
      if (!decode(frame.payload, &pong)) return false;
      note_clock(pong.wall_clock_ns,
                 std::max<std::int64_t>(0, difference(wall_clock_ns(), pong.sent_wall_clock_ns)));
    } else {
      observer_.on_frame(id_, std::move(frame));
    }
  }
  return !parser_.broken();
}

asio::awaitable<void> HostLink::read_loop() {
  std::string buffer(kReadBytes, '\0');
  while (!ended_) {
    const std::size_t got = co_await channel_->read_some(asio::buffer(buffer));
    if (ended_) break;
    if (got == 0) {
      const std::string words = channel_->last_words();
      end("the connection to its agent broke" +
          (words.empty() ? "" : ": " + printable(words, 500)));
      break;
    }
    last_heard_ = now();
    if (!parser_.feed({buffer.data(), got}) || !take_frames())
      end("its agent sent what is no message");
  }
}

asio::awaitable<void> HostLink::write_loop() {
  while (!ended_) {
    if (outgoing_.empty()) {
      boost::system::error_code ignored;
      work_.expires_at(TimePoint::max());
      co_await work_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
      continue;
    }
    writing_ = true;
    std::string bytes = std::exchange(outgoing_, {});
    const bool written = co_await channel_->write(asio::buffer(bytes));
    writing_ = false;
    wipe(&bytes);
    if (!written && !ended_) {
      // What the agent still said before it went may wait in the channel: the reader meets the end
      // itself.
      co_return;
    }
  }
}

asio::awaitable<void> HostLink::heartbeat_loop() {
  // At once, so that the difference of the clocks is known before anything can fail.
  send(wire::Ping{wall_clock_ns()});
  const Duration beat = wire::ping_interval(lost_after_);
  TimePoint last_beat = now();
  while (!ended_) {
    boost::system::error_code ignored;
    heartbeat_.expires_after(beat);
    co_await heartbeat_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    if (ended_) break;
    // A beat that comes far too late means that hvrun itself stood still: that is no silence of the
    // host.
    if (now() - last_beat > 2 * beat) pardon_silence();
    last_beat = now();
    send(wire::Ping{wall_clock_ns()});
    if (now() - last_heard_ > lost_after_) {
      end("it was silent for " + seconds_text(lost_after_) + " (--lost-after)");
    }
  }
}

}  // namespace hv::launcher
