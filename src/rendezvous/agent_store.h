// The store of a real rank: put, fence and get through its host's agent, over the agent's Unix
// socket.
// SPDX-License-Identifier: Apache-2.0
//
// The frames are those of messages.h. The agent may send an Event or Silence at any moment: whoever
// reads keeps it for next_event(). After the agent has gone every call fails with that reason; the
// launcher ends the rank anyway.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "src/base/clock.h"
#include "src/base/fork_guarded_fd.h"
#include "src/rendezvous/messages.h"
#include "src/rendezvous/store.h"
#include "src/wire/frame.h"

namespace hv {

class AgentStore : public Store {
 public:
  // Connects and joins; blocks until the agent has welcomed or refused this rank, at most timeout.
  static Status join(const std::string& socket_name, int rank, int epoch,
                     std::chrono::milliseconds timeout, std::unique_ptr<AgentStore>* store);

  Status put(const std::string& key, const std::string& value) override;
  Status fence(std::chrono::milliseconds timeout) override;
  Status get(int rank, const std::string& key, std::string* value) override;
  Status job_key(JobKey* key) override;
  void report(const RankReport& what) override;
  int event_fd() const override { return readiness_.get(); }
  bool next_event(PeerEvent* event) override;

 private:
  AgentStore(UniqueFd socket, std::string name, std::chrono::milliseconds timeout);
  Status watch_events();

  template <class Message>
  Status send(const Message& message, const std::string& doing);
  // Where the socket takes nothing at once the message is lost.
  template <class Message>
  void send_or_pass_over(const Message& message);
  // One for each kind of report.
  void tell(const PeerLost& lost);
  void tell(const wire::StepTimes& times);
  void tell(const wire::TensorStall& stall);
  void tell(const Leaving&);
  // Reads frames until one of this type has come; Events are kept on the way.
  template <class Message>
  Status await(Message* message, const std::string& doing, TimePoint deadline, bool loss_ends_it);
  Status wait_for_bytes(const std::string& doing, TimePoint deadline);
  // Takes what the socket holds now, without blocking.
  void receive();
  void keep_events();
  bool take_event(const Frame& frame);
  void keep(PeerEvent event);
  void break_off(const std::string& reason);
  Status broken(const std::string& doing) const;

  ForkGuardedFd socket_;
  ForkGuardedFd kept_;       // eventfd: readable while events_ holds something
  ForkGuardedFd readiness_;  // epoll over both: what event_fd() hands out
  const std::string name_;
  const std::chrono::milliseconds timeout_;
  FrameParser parser_{rendezvous::kMaxPayload};
  std::deque<Frame> replies_;
  std::deque<PeerEvent> events_;
  std::string loss_;    // words of the first event
  std::string broken_;  // why the connection is of no use any more; empty while it is
  JobKey key_{};
  std::uint32_t fences_ = 0;
};

}  // namespace hv
