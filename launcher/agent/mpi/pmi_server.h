// PmiServer: the agent as a PMI-1 server, over a socket that each rank of this host inherits.
// SPDX-License-Identifier: Apache-2.0
//
// A rank that breaks the protocol, or does not read its answers, is hung up on; no other rank
// notices.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "launcher/agent/event_loop.h"
#include "launcher/agent/mpi/pmi_rendezvous.h"
#include "src/base/status.h"
#include "src/base/unique_fd.h"
#include "src/contract/rank_environment.h"

namespace hv::launcher {

class PmiServer {
 public:
  struct Callbacks {
    std::function<void(const wire::FenceIn&)> on_fence;
    // The rank waits to be ended with that code; may be called repeatedly.
    std::function<void(std::uint32_t rank, int code)> on_abort;
    std::function<void()> on_change;  // a rank may have begun, or ceased, to wait for others
  };
  PmiServer(EventLoop& loop, PmiRendezvous rendezvous, Callbacks callbacks);
  ~PmiServer();
  PmiServer(const PmiServer&) = delete;
  PmiServer& operator=(const PmiServer&) = delete;

  // Makes a rank's socket before its start: *theirs is the rank's end, which its environment names.
  Status connect(std::uint32_t rank, std::uint32_t size, UniqueFd* theirs,
                 RankEnvironment* environment);
  void pass(const wire::FenceOut& out);
  wire::MpiEnd rank_ended(std::uint32_t rank);
  const PmiRendezvous& rendezvous() const { return rendezvous_; }

 private:
  struct Client {
    UniqueFd fd;
    std::string unread, outgoing;
  };
  void ready(std::uint32_t rank, std::uint32_t events);
  // False: there was nothing left to read.
  bool receive(std::uint32_t rank);
  // False: a protocol error; the caller hangs up.
  bool answer_lines(std::uint32_t rank, Client& client);
  bool send(std::uint32_t rank, Client& client, const std::string& text);
  void hang_up(std::uint32_t rank);
  void report_barriers();

  EventLoop& loop_;
  PmiRendezvous rendezvous_;
  const Callbacks callbacks_;
  std::map<std::uint32_t, Client> clients_;
};

}  // namespace hv::launcher
