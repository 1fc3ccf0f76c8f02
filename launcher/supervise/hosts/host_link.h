// HostLink: the conversation with one agent: frames in and out, heartbeats, clock difference.
// SPDX-License-Identifier: Apache-2.0
//
// Lives on the io_context thread. Output never holds control back: the agent queues by credits, and
// what hvrun sends is small. Any received byte counts as a heartbeat; without one for lost_after
// the link ends.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "launcher/spawn/spawner.h"
#include "src/base/clock.h"
#include "src/wire/frame.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// A host's number for the job's life: its position among the hosts that get an agent.
enum class HostId : std::uint32_t {};

// Identifies a link: a host that is lost gets a second one.
struct LinkId {
  HostId host{};
  std::uint32_t number = 0;
  friend bool operator==(const LinkId&, const LinkId&) = default;
};

class LinkObserver {
 public:
  virtual ~LinkObserver() = default;
  virtual void on_frame(const LinkId& link, Frame frame) = 0;
  // No more frames follow. reason: text for people.
  virtual void on_link_ended(const LinkId& link, std::string reason) = 0;
};

class HostLink : public std::enable_shared_from_this<HostLink> {
 public:
  HostLink(boost::asio::any_io_executor executor, const LinkId& id,
           std::unique_ptr<AgentChannel> channel, Duration lost_after, LinkObserver& observer);

  // Begins reading, writing and heartbeats; they go on until the link has ended.
  void start();
  // Queues a message; nothing happens once the link has ended.
  template <class Message>
  void send(const Message& message) {
    queue(encode_frame_of(message));
  }
  const LinkId& id() const { return id_; }
  // Ends the link from this side; the observer is not notified.
  void close();
  bool ended() const { return ended_; }
  // Everything queued has been handed to the channel.
  bool flushed() const { return outgoing_.empty() && !writing_; }
  // A wall-clock time of the agent, on hvrun's clock.
  std::int64_t corrected(std::int64_t agent_wall_clock_ns) const;
  // round_trip_ns: kUnknownRoundTrip for a time that came unasked.
  static constexpr std::int64_t kUnknownRoundTrip = INT64_MAX;
  void note_clock(std::int64_t agent_wall_clock_ns, std::int64_t round_trip_ns);
  struct ClockReading {
    std::int64_t ahead_ns = 0;                       // the agent's less hvrun's
    std::int64_t round_trip_ns = kUnknownRoundTrip;  // of the exchange that told; half of it may be
                                                     // wrong
  };
  ClockReading clock() const { return {clock_offset_ns_, best_round_trip_ns_}; }
  // Silence is allowed while hvrun itself is stopped.
  void pardon_silence() { last_heard_ = now(); }
  std::string last_words() const { return channel_->last_words(); }

 private:
  void queue(std::string frame);
  void end(const std::string& reason);
  bool take_frames();
  boost::asio::awaitable<void> read_loop();
  boost::asio::awaitable<void> write_loop();
  boost::asio::awaitable<void> heartbeat_loop();

  boost::asio::any_io_executor executor_;
  const LinkId id_;
  std::unique_ptr<AgentChannel> channel_;
  Duration lost_after_;
  LinkObserver& observer_;
  FrameParser parser_;
  std::string outgoing_;
  bool writing_ = false;
  bool ended_ = false;
  TimePoint last_heard_;
  boost::asio::steady_timer work_;  // wakes write_loop
  boost::asio::steady_timer heartbeat_;
  std::int64_t clock_offset_ns_ = 0;
  std::int64_t best_round_trip_ns_ = kUnknownRoundTrip;
};

}  // namespace hv::launcher
