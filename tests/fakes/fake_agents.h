// Agents that behave by script, for tests of the supervisor: real messages, no host, no process.
// SPDX-License-Identifier: Apache-2.0
//
// A FakeAgent answers like a real one; a test overrides what it wants to go otherwise. Everything
// runs on the supervisor's io_context thread.
#pragma once

#include <array>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "hvrun_version.h"
#include "launcher/spawn/spawner.h"
#include "src/wire/frame.h"
#include "src/wire/messages.h"
#include "src/wire/mpi_wiring.h"
#include "src/wire/stacks.h"

namespace hv::launcher {

class FakeAgent {
 public:
  virtual ~FakeAgent() = default;

  // What the test looks at afterwards.
  wire::SetupRequest setup;
  wire::Launch launch;
  std::vector<wire::RankDied> deaths;
  std::vector<int> signals;
  std::vector<wire::Pause> pauses;
  std::function<void(const wire::Silence&)> on_silence;  // unset: it is noted
  std::function<void(const Frame&)> on_inventory = [this](const Frame&) {
    send(wire::InventoryReply{});
  };
  std::function<void(const Frame&)> on_wiring = [this](const Frame&) { send(wire::WiringReply{}); };
  std::function<void()> on_steps_request = [] {};
  std::function<void(const wire::StackRequest&)> on_stack_request =
      [this](const wire::StackRequest& request) {
        send(wire::StackReply{request.number, {}});
      };
  bool ended = false;   // End has come
  double grace_s = -1;  // that of the first
  bool answers_pings = true;
  bool tells_started = true;  // at Go
  // What it answers, by wire::Meeting.
  std::array<double, wire::kMeetings> waited_s{1e6, 1e6, 1e6};
  std::vector<std::uint32_t> in_pmi, in_pmix;

  // What a script may override.
  virtual void on_start() {
    wire::Hello hello;
    hello.build = HVRUN_BUILD_ID;
    hello.facts.usable_cores = 4;
    hello.wall_clock_ns = clock_ns();
    hello.facts.addresses = {"10.0.0.1"};
    send(hello);
  }
  virtual void on_go() { finish_all(0); }
  virtual void on_end() { end_running_ranks(); }
  virtual std::vector<std::uint32_t> exiting_now() { return {}; }
  virtual std::vector<std::uint32_t> absent_now() { return {}; }
  virtual void on_setup() {
    if (setup.sweep) return send(wire::Empty{});
    send(wire::SetupReply{"@fake", 29500, 4000, false});
  }
  virtual void on_launch() {
    for (const auto& rank : launch.ranks) running_.insert(rank.rank);
    send(wire::Ready{});
  }

  // This host's clock.
  virtual std::int64_t clock_ns() { return wall_clock_ns(); }

  // What scripts do.
  template <class Message>
  void send(const Message& message) {
    inbox_ += encode_frame_of(message);
    wake();
  }
  void send_started() {
    wire::Started started;
    for (std::size_t i = 0; i < launch.ranks.size(); ++i)
      started.pids.push_back(static_cast<std::uint32_t>(1000 + i));
    send(started);
  }
  void output(std::uint32_t rank, const std::string& bytes) {
    send(wire::Output{rank, 1, false, 0, bytes});
  }
  void exit_rank(std::uint32_t rank, wire::Exited exited) {
    running_.erase(rank);
    exited.rank = rank;
    exited.wall_clock_ns = clock_ns();
    send(exited);
    for (const std::uint8_t stream : {1, 2}) send(wire::Output{rank, stream, true, 0, ""});
  }
  void finish_all(std::uint32_t code) {
    for (const std::uint32_t rank : std::set<std::uint32_t>(running_))
      exit_rank(rank, {0, false, code, false, false, 0, false, false});
  }
  void end_running_ranks() {
    ended = true;
    for (const std::uint32_t rank : std::set<std::uint32_t>(running_))
      exit_rank(rank, {0, true, SIGTERM, true, false, 0, false, false});
    send(wire::Empty{});
  }
  // The connection breaks as when an agent is killed.
  void vanish() {
    gone_ = true;
    wake();
  }
  // After so long, on the io_context thread.
  void later(std::chrono::milliseconds delay, std::function<void()> act) {
    auto timer = std::make_shared<boost::asio::steady_timer>(timer_->get_executor(), delay);
    timer->async_wait([timer, act = std::move(act)](const boost::system::error_code& error) {
      if (!error) act();
    });
  }

 private:
  friend class FakeChannel;
  void wake() {
    if (timer_) timer_->cancel();
  }
  void receive(const Frame& frame);

  std::string inbox_;  // on its way to hvrun
  bool gone_ = false;
  std::set<std::uint32_t> running_;
  boost::asio::steady_timer* timer_ = nullptr;
};

template <class Message>
Message decoded(const Frame& frame) {
  Message message;
  (void)decode(frame.payload, &message);
  return message;
}

inline void FakeAgent::receive(const Frame& frame) {
  using wire::Type;
  switch (static_cast<Type>(frame.type)) {
    case Type::kInventoryRequest:
      return on_inventory(frame);
    case Type::kWiringRequest:
      return on_wiring(frame);
    case Type::kSetupRequest:
      (void)decode(frame.payload, &setup);
      return on_setup();
    case Type::kProbeRequest: {
      const auto request = decoded<wire::ProbeRequest>(frame);
      wire::ProbeReply reply;
      for (const auto& target : request.targets)
        reply.results.push_back({target.host_id, target.addresses, ""});
      return send(reply);
    }
    case Type::kLaunch:
      (void)decode(frame.payload, &launch);
      return on_launch();
    case Type::kGo:
      if (tells_started) send_started();
      return on_go();
    case Type::kEnd:
      if (grace_s < 0) grace_s = decoded<wire::End>(frame).grace_s;
      return on_end();
    case Type::kStackRequest:
      return on_stack_request(decoded<wire::StackRequest>(frame));
    case Type::kStepsRequest:
      return on_steps_request();
    case Type::kQuery:
      return send(wire::QueryReply{decoded<wire::Query>(frame).number,
                                   exiting_now(),
                                   absent_now(),
                                   {},
                                   waited_s,
                                   in_pmi,
                                   in_pmix});
    case Type::kRankDied:
      (void)decode(frame.payload, &deaths.emplace_back());
      return;
    case Type::kSignal:
      return signals.push_back(decoded<wire::Signal>(frame).number);
    case Type::kPause:
      (void)decode(frame.payload, &pauses.emplace_back());
      return;
    case Type::kSilence: {
      const auto silence = decoded<wire::Silence>(frame);
      return on_silence ? on_silence(silence) : send(wire::SilenceNoted{silence.number});
    }
    case Type::kPing: {
      const auto ping = decoded<wire::Ping>(frame);
      if (answers_pings) send(wire::Pong{ping.wall_clock_ns, clock_ns()});
      return;
    }
    default:
      return;
  }
}

class FakeChannel : public AgentChannel {
 public:
  FakeChannel(FakeAgent& agent, boost::asio::any_io_executor executor)
      : agent_(agent), timer_(executor) {
    agent_.timer_ = &timer_;
    agent_.gone_ = false;
    agent_.inbox_.clear();  // what an earlier channel has not read
    agent_.on_start();
  }
  ~FakeChannel() override {
    if (agent_.timer_ == &timer_) agent_.timer_ = nullptr;  // not a later channel's
  }
  boost::asio::awaitable<std::size_t> read_some(boost::asio::mutable_buffer buffer) override {
    while (agent_.inbox_.empty() && !agent_.gone_ && !closed_) {
      boost::system::error_code ignored;
      timer_.expires_at(TimePoint::max());
      co_await timer_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
    }
    if (closed_ || agent_.inbox_.empty()) co_return 0;
    const std::size_t size = std::min(buffer.size(), agent_.inbox_.size());
    std::memcpy(buffer.data(), agent_.inbox_.data(), size);
    agent_.inbox_.erase(0, size);
    co_return size;
  }
  boost::asio::awaitable<bool> write(boost::asio::const_buffer buffer) override {
    if (agent_.gone_) co_return false;
    (void)parser_.feed({static_cast<const char*>(buffer.data()), buffer.size()});
    for (Frame frame; parser_.next(&frame);) agent_.receive(frame);
    co_return true;
  }
  void close() override {
    closed_ = true;
    timer_.cancel();
  }
  std::string last_words() const override { return ""; }

 private:
  FakeAgent& agent_;
  boost::asio::steady_timer timer_;
  FrameParser parser_{wire::kMaxAgentPayload};
  bool closed_ = false;
};

// Hands out the agents of its table; a host that is not in it cannot be reached.
class FakeSpawner : public Spawner {
 public:
  explicit FakeSpawner(std::map<std::string, FakeAgent*> agents) : agents_(std::move(agents)) {}
  boost::asio::awaitable<std::unique_ptr<AgentChannel>> start(HostTarget host) override {
    const auto found = agents_.find(host.name);
    if (found == agents_.end()) {
      throw Error(ErrorKind::kStart, "connect to host " + host.name + ": no such host",
                  "check its name");
    }
    co_return std::make_unique<FakeChannel>(*found->second,
                                            co_await boost::asio::this_coro::executor);
  }
  std::string route(const HostTarget&) override { return "a fake"; }
  std::string advice_if_lost(const HostTarget& host) override { return "look at " + host.name; }

 private:
  std::map<std::string, FakeAgent*> agents_;
};

}  // namespace hv::launcher
