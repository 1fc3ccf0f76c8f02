// RankSocket: the agent's end of the connections of this host's ranks: joins, puts, fences, gets,
// losses.
// SPDX-License-Identifier: Apache-2.0
//
// A client that breaks the protocol is dropped; no other rank notices. The end of a connection does
// not mean death: forked children hold sockets open, and programs close them; a rank has died when
// its process was reaped.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "launcher/agent/event_loop.h"
#include "launcher/agent/rendezvous/rank_listener.h"
#include "launcher/agent/rendezvous/rank_rendezvous.h"
#include "launcher/agent/rendezvous/rank_reports.h"
#include "launcher/agent/rendezvous/stall_watch.h"
#include "src/base/status.h"
#include "src/base/unique_fd.h"
#include "src/rendezvous/messages.h"
#include "src/wire/frame.h"
#include "src/wire/messages.h"
#include "src/wire/stacks.h"

namespace hv::launcher {

struct RankSocketCallbacks {
  std::function<void(wire::FenceIn)> on_fence;
  std::function<void(const wire::RankLost&)> on_lost;
  std::function<void(const wire::FenceStalled&)> on_stall;
  std::function<void(const wire::TensorStalled&)> on_tensor_stall;
  std::function<void(const wire::CallStalled&)> on_call_stall;
};

// How a rank stood in the job when it ended.
enum class RankStanding { kNeverJoined, kJoined, kLeft };

class RankSocket {
 public:
  // stalls: which waits are reported; see wire::FenceStalled.
  RankSocket(EventLoop& loop, const JobKey& key, RankSocketCallbacks callbacks,
             StallLimits stalls = {});
  ~RankSocket();
  RankSocket(const RankSocket&) = delete;
  RankSocket& operator=(const RankSocket&) = delete;

  Status listen(const std::string& job_id, std::uint32_t host_id) {
    return listener_.listen(job_id, host_id);
  }
  const std::string& name() const { return listener_.name(); }
  // Before the ranks start: which ranks will join.
  void expect(std::set<std::uint32_t> ranks) { rendezvous_ = RankRendezvous(std::move(ranks)); }

  void pass_fence(const wire::FenceOut& out);
  // The rank's process was reaped. Reads its last messages first.
  RankStanding rank_ended(std::uint32_t rank);
  const RankReports& reports() const { return reports_; }
  // Running ranks that wait at no fence.
  std::vector<std::uint32_t> absent() const { return rendezvous_.absent(); }
  // How long ranks have been waiting at a fence; 0: none waits.
  double seconds_waited() const { return stalls_.seconds_waited(); }
  // Reports the loss to every rank that has joined or will join.
  void report_loss(std::uint32_t rank, const std::string& reason);
  // Whether peers may send no heartbeats (wire::Silence), for every rank that has joined or will
  // join.
  void pause_heartbeats(bool is_paused);

 private:
  struct Client {
    UniqueFd fd;
    FrameParser parser{rendezvous::kMaxPayload};
    std::string outgoing;
    bool has_joined = false;
    std::uint32_t rank = 0;
    std::uint32_t epoch = 0;
    std::int32_t pid = 0;
    bool has_left = false;
    bool is_dropped = false;      // freed at the end of the round
    EventLoop::Timer deadline{};  // to join
  };
  using ClientPointer = std::shared_ptr<Client>;

  void add_client(UniqueFd fd, std::int32_t pid);
  void ready(const ClientPointer& client, std::uint32_t events);
  // False: there was nothing left to read.
  bool receive(Client& client);
  // False: a protocol error; the caller drops the client.
  bool handle(Client& client, const Frame& frame);
  bool handle_first(Client& client, const Frame& frame);
  bool handle_joined(Client& client, const Frame& frame);
  void join(Client& client, const rendezvous::Join& request);
  std::string why_refused(const rendezvous::Join& request) const;
  void answer(Client& client, const rendezvous::Get& get);
  void leave(Client& client);
  void read_last_messages(std::uint32_t rank);
  template <class Message>
  void send(Client& client, const Message& message);
  void flush(Client& client);
  void drop(Client& client);
  void check_fences();

  EventLoop& loop_;
  JobKey key_;
  RankSocketCallbacks callbacks_;
  RankListener listener_;
  RankRendezvous rendezvous_{{}};
  std::map<int, ClientPointer> clients_;
  std::map<std::uint32_t, std::string> losses_;
  RankReports reports_;
  bool is_paused_ = false;
  StallWatch stalls_;
};

}  // namespace hv::launcher
