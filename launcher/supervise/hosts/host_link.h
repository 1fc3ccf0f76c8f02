// HostLink: the connection to one agent: frames in and out, and heartbeats.
// SPDX-License-Identifier: Apache-2.0
//
// io_context thread only. Output never delays control messages: credits limit what the agent
// queues, and hvrun's messages are small. Any received byte counts as a heartbeat; without one for
// lost_after the link ends. It also ends when the agent sends what it may not (FrameAllowance), or
// does not read what hvrun sends.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "launcher/spawn/spawner.h"
#include "launcher/supervise/hosts/agent_clock.h"
#include "launcher/supervise/hosts/frame_allowance.h"
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

  // Begins reading, writing and heartbeats, until the link has ended.
  void start();
  // Queues a message; nothing happens once the link has ended.
  template <class Message>
  void send(const Message& message) {
    allowance_.note_sent(message);
    queue(encode_frame_of(message));
  }
  const LinkId& id() const { return id_; }
  // Ends the link from this side; the observer is not notified.
  void close();
  bool has_ended() const { return has_ended_; }
  // Everything queued has been handed to the channel.
  bool is_flushed() const { return outgoing_.empty() && !is_writing_; }
  // Heartbeats measure it.
  AgentClock& clock() { return clock_; }
  const AgentClock& clock() const { return clock_; }
  // After hvrun itself was stopped: missing heartbeats prove nothing.
  void restart_heartbeat_timeout() { last_heard_ = now(); }

 private:
  void queue(std::string frame);
  void end(const std::string& reason);
  // "": all may come; else why the link ends.
  std::string handle_frames();
  bool handle_heartbeat(const Frame& frame);
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
  bool is_writing_ = false;
  bool has_ended_ = false;
  TimePoint last_heard_;
  boost::asio::steady_timer work_;  // wakes write_loop
  boost::asio::steady_timer heartbeat_;
  AgentClock clock_;
  FrameAllowance allowance_;
};

}  // namespace hv::launcher
