// How ranks of different hosts connect: everybody listens, the higher rank of a pair connects to
// the lower.
// SPDX-License-Identifier: Apache-2.0
//
// A rank publishes all addresses of its host; the connecting side tries them at once, and the first
// whose far end proves that it is the wanted rank of this job wins. So an address that several
// hosts share (docker0) merely fails its proof. Loopback addresses are tried only inside one
// network namespace.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "runtime/transport/handshake.h"
#include "runtime/transport/mesh_fabric.h"
#include "runtime/transport/shm/host_meeting.h"
#include "src/base/unique_fd.h"
#include "src/net/address.h"

namespace hv::runtime {

class TcpMeeting {
 public:
  TcpMeeting(const MeetingTerms& terms, const Topology& topology);

  // Opens this rank's port. addresses: how other hosts reach it; empty: all interfaces. *card: to
  // publish.
  Status listen(const std::vector<std::string>& addresses, std::string* card);
  // What another rank published.
  Status set_addresses(int rank, const std::string& card);
  // Blocks until every rank of another host is connected and proven.
  Status connect_all(RemoteTransport* remote);

 private:
  // A connection on its way to being proven; each waits for a fixed number of bytes.
  struct Attempt {
    int peer = -1;  // -1: came in, and has not said who it is
    SocketAddress address;
    UniqueFd socket;
    bool is_connecting = false;
    bool is_incoming = false;
    bool has_greeted = false;  // incoming: the answer is sent, the proof is awaited
    Hello hello;
    ServerAnswer answer;
    std::size_t got = 0;
    TimePoint deadline;
  };
  struct Peer {
    std::vector<SocketAddress> addresses;
    int tries = 0;
    TimePoint next_try{};
    std::string last_failure;
  };

  void start_attempts();
  void accept_some();
  // Moves one attempt on; false: it is over, well or badly.
  bool advance(Attempt* attempt);
  bool advance_outgoing(Attempt* attempt);
  bool advance_incoming(Attempt* attempt);
  bool receive(Attempt* attempt, void* to, std::size_t size, bool* is_whole);
  bool give_up(const Attempt& attempt, const std::string& why);
  bool keep(Attempt* attempt);
  bool is_expected(const Hello& hello) const;
  bool wait_for_sockets(TimePoint deadline);
  Status find_hopeless() const;
  Status time_out() const;
  std::string name_of(int rank) const;

  const MeetingTerms terms_;
  const Topology topology_;
  UniqueFd listener_;
  std::map<int, Peer> peers_;  // every rank of another host
  std::map<int, ForkGuardedFd> connected_;
  std::list<Attempt> attempts_;
};

}  // namespace hv::runtime
