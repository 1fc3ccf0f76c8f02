// How ranks of different hosts connect: everybody listens, the higher rank of a pair connects to
// the lower.
// SPDX-License-Identifier: Apache-2.0
//
// A rank publishes all addresses of its host that HVRUN_INTERFACES allows, the likeliest kind
// first. The connecting side tries those of one kind at once, those of the next a moment later or
// when all before have failed (as RFC 8305 does), and the first whose far end proves that it is the
// wanted rank of this job wins. So an address that several hosts share (docker0) is no temptation,
// and merely fails its proof. Further streams go to the address that won. Loopback addresses are
// tried only inside one network namespace.
//
// A link-local address is tried only when all others have failed, over each interface that has one
// itself: a host with 50 interfaces has 50 * 50 such pairs, and the kernel asks for a neighbour for
// each. The likeliest pairs are tried, and no more than 64 addresses of a peer (link_local.h).
//
// A connection that says nothing holds a descriptor. When there are no more of them, or too many
// such connections, the longest silent one is dropped for the next that comes; where none is
// silent, one that has greeted 2 s ago and not proven itself; else those that come wait.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/transport/handshake.h"
#include "runtime/transport/mesh_fabric.h"
#include "runtime/transport/shm/host_meeting.h"
#include "src/base/unique_fd.h"
#include "src/net/address.h"
#include "src/net/interfaces.h"
#include "src/net/port_range.h"

namespace hv::runtime {

// How this rank's connections to ranks of other hosts are made. Values only.
constexpr int kMostStreams = 16;

struct TcpSettings {
  std::vector<std::string> addresses{};  // how other hosts reach this one; empty: by its interfaces
  PortRange ports{};                     // that this rank listens on one of
  InterfaceFilter interfaces{};          // of this host that may be used
  int streams = 1;                       // connections to each peer; alike on all ranks
};

class TcpMeeting {
 public:
  TcpMeeting(const MeetingTerms& terms, const Topology& topology, TcpSettings settings = {});

  // Opens this rank's port. *card: to publish.
  Status listen(std::string* card);
  // What another rank published.
  Status set_addresses(int rank, const std::string& card);
  // Blocks until every rank of another host is connected and proven.
  Status connect_all(RemoteTransport* remote);

 private:
  // A connection on its way to being proven; each waits for a fixed number of bytes.
  struct Attempt {
    int peer = -1;  // -1: came in, and has not said who it is
    int stream = 0;
    SocketAddress address;
    UniqueFd socket;
    bool is_connecting = false;
    bool is_incoming = false;
    std::optional<TimePoint> greeted_at{};  // incoming: the answer is sent, the proof is awaited
    Hello hello;
    ServerAnswer answer;
    std::size_t got = 0;
    TimePoint deadline;
  };
  struct Candidate {
    SocketAddress address;
    AddressKind kind = AddressKind::kNetwork;
    std::string failure{};  // the last one's reason
  };
  struct Peer {
    std::string host{};                   // its host's name, for messages
    std::vector<Candidate> candidates{};  // by kind
    std::uint16_t port = 0;
    std::vector<InterfaceAddress> link_local{};  // its own; not among the candidates yet
    std::size_t next_candidate = 0;              // of this round
    int rounds = 0;                              // begun
    TimePoint next_step{};
    std::vector<ForkGuardedFd> streams{};    // by number; proven, or not there yet
    std::optional<SocketAddress> address{};  // that the first stream came to; the others follow it
    // The next addresses to try are link-local.
    bool is_link_local_next() const {
      if (next_candidate < candidates.size() &&
          candidates[next_candidate].kind <= AddressKind::kLinkLocal)
        return candidates[next_candidate].kind == AddressKind::kLinkLocal;
      return !link_local.empty();
    }
    bool is_through() const { return next_candidate == candidates.size() && link_local.empty(); }
    bool has(int stream) const {
      return static_cast<bool>(streams[static_cast<std::size_t>(stream)]);
    }
    bool is_whole() const {
      return std::all_of(streams.begin(), streams.end(), [](const auto& s) { return !!s; });
    }
  };

  Status choose_own_addresses(std::vector<InterfaceAddress>* chosen) const;
  void add_link_local_candidates(Peer* peer) const;
  void start_attempts();
  void start_next_kind(int rank, Peer* peer);
  void start_further_streams(int rank, Peer* peer);
  Status start(int rank, int stream, const SocketAddress& address);
  bool has_descriptor();
  bool is_everybody_here() const;
  void accept_some();
  bool drop_oldest_stranger();
  // Moves one attempt on; false: it is over, well or badly.
  bool advance(Attempt* attempt);
  bool advance_outgoing(Attempt* attempt);
  bool advance_incoming(Attempt* attempt);
  bool receive(Attempt* attempt, void* to, std::size_t size, bool* is_whole);
  bool give_up(const Attempt& attempt, const std::string& why);
  bool keep(Attempt* attempt);
  bool is_expected(const Hello& hello) const;
  bool wait_for_sockets(TimePoint deadline);
  bool is_tried(int rank) const;
  Status find_hopeless() const;
  std::string tried_addresses(int rank, const Peer& peer) const;
  Status time_out() const;
  std::string name_of(int rank) const;

  const MeetingTerms terms_;
  const Topology topology_;
  const TcpSettings settings_;
  UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::map<int, Peer> peers_;    // every rank of another host
  std::list<Attempt> attempts_;  // in the order in which they were begun
  Status shortage_;              // not kOk: why no connection can be taken or made for now
};

}  // namespace hv::runtime
