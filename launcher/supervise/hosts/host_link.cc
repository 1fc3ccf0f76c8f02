// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/hosts/host_link.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "src/base/text.h"
#include "src/wire/wipe.h"

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kReadBytes = 256 << 10;
// Limit of unsent bytes: four of the largest messages. An agent that makes hvrun answer and does
// not read must not exhaust its memory.
constexpr std::size_t kMostUnsent = 4 * wire::kMaxAgentPayload;

std::string describe_exception(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an unknown error";
  }
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
      heartbeat_(executor_),
      allowance_(lost_after, last_heard_) {}

void HostLink::start() {
  // Each loop keeps the link alive until it ends.
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
  if (has_ended_) return;
  if (outgoing_.size() + frame.size() > kMostUnsent) {
    wipe(&frame);
    return end("its agent does not read what hvrun sends: " + format_bytes(outgoing_.size()) +
               " wait");
  }
  // The frame may hold the job's key.
  append_secret(&outgoing_, frame);
  wipe(&frame);
  work_.cancel();
}

void HostLink::close() {
  if (has_ended_) return;
  has_ended_ = true;
  work_.cancel();
  heartbeat_.cancel();
  channel_->close();
}

void HostLink::end(const std::string& reason) {
  if (has_ended_) return;
  close();
  observer_.on_link_ended(id_, reason);
}

std::string HostLink::handle_frames() {
  Frame frame;
  while (!has_ended_ && parser_.next(&frame)) {
    if (std::string breach = allowance_.take(frame, now()); !breach.empty()) return breach;
    const auto type = static_cast<wire::Type>(frame.type);
    if (type != wire::Type::kPing && type != wire::Type::kPong) {
      observer_.on_frame(id_, std::move(frame));
    } else if (!handle_heartbeat(frame)) {
      return "its agent broke the protocol (" + wire::name_of(frame.type) + ")";
    }
  }
  return parser_.broken() ? "its agent sent what is no message" : "";
}

bool HostLink::handle_heartbeat(const Frame& frame) {
  if (frame.type == static_cast<std::uint8_t>(wire::Type::kPing)) {
    wire::Ping ping;
    if (!decode(frame.payload, &ping)) return false;
    send(wire::Pong{ping.wall_clock_ns, wall_clock_ns()});
    return true;
  }
  wire::Pong pong;
  if (!decode(frame.payload, &pong)) return false;
  clock_.add_exchange(pong.sent_wall_clock_ns, pong.wall_clock_ns, wall_clock_ns());
  return true;
}

asio::awaitable<void> HostLink::read_loop() {
  std::string buffer(kReadBytes, '\0');
  while (!has_ended_) {
    const std::size_t got = co_await channel_->read_some(asio::buffer(buffer));
    if (has_ended_) break;
    if (got == 0) {
      const std::string text = channel_->last_words();
      end("the connection to its agent broke" + (text.empty() ? "" : ": " + printable(text, 500)));
      break;
    }
    last_heard_ = now();
    if (!parser_.feed({buffer.data(), got})) {
      end("its agent sent what is no message");
    } else if (const std::string breach = handle_frames(); !breach.empty()) {
      end(breach);
    }
  }
}

asio::awaitable<void> HostLink::write_loop() {
  while (!has_ended_) {
    if (outgoing_.empty()) {
      boost::system::error_code ignored;
      work_.expires_at(TimePoint::max());
      co_await work_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
      continue;
    }
    is_writing_ = true;
    std::string bytes = std::exchange(outgoing_, {});
    const bool written = co_await channel_->write(asio::buffer(bytes));
    is_writing_ = false;
    wipe(&bytes);
    if (!written && !has_ended_) {
      // The channel may still hold the agent's last messages: read_loop ends the link after them.
      co_return;
    }
  }
}

asio::awaitable<void> HostLink::heartbeat_loop() {
  // The first one at once: the difference of the clocks is known before anything can fail.
  send(wire::Ping{wall_clock_ns()});
  const Duration interval = wire::ping_interval(lost_after_);
  TimePoint last_ping = now();
  while (!has_ended_) {
    boost::system::error_code ignored;
    heartbeat_.expires_after(interval);
    co_await heartbeat_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    if (has_ended_) break;
    // The timer is late when hvrun itself was stopped: missing heartbeats then prove nothing.
    if (now() - last_ping > 2 * interval) restart_heartbeat_timeout();
    last_ping = now();
    send(wire::Ping{wall_clock_ns()});
    if (now() - last_heard_ > lost_after_) {
      end("it was silent for " + format_duration(lost_after_) + " (--lost-after)");
    }
  }
}

}  // namespace hv::launcher
