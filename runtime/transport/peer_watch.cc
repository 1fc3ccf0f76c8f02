// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/peer_watch.h"

#include <algorithm>

#include "runtime/transport/placement.h"
#include "src/base/clock.h"

namespace hv::runtime {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kShortestBeat{20};

milliseconds beat_of(milliseconds timeout) {
  if (timeout.count() <= 0) return milliseconds(0);
  return std::max(timeout / kBeatsOfTimeout, kShortestBeat);
}

}  // namespace

WatchPartners watch_partners(const Topology& topology) {
  WatchPartners partners;
  const auto mine = static_cast<std::size_t>(local_index(topology));
  const int here = topology.host_of[static_cast<std::size_t>(topology.rank)];
  for (int host = 0; host < static_cast<int>(topology.leaders.size()); ++host) {
    if (host == here) continue;
    const std::vector<int> there = ranks_of_host(topology, host);
    partners.speak_to.push_back(there[mine % there.size()]);
    for (std::size_t index = 0; index < there.size(); ++index)
      if (index % topology.local_ranks.size() == mine) partners.listen_to.push_back(there[index]);
  }
  return partners;
}

PeerWatch::PeerWatch(const Topology& topology, milliseconds timeout, milliseconds patience)
    : timeout_(timeout), beat_(beat_of(timeout)) {
  if (beat_.count() == 0) return;
  WatchPartners partners = watch_partners(topology);
  speak_to_ = std::move(partners.speak_to);
  const int first = -static_cast<int>(patience / beat_);
  for (const int rank : topology.local_ranks) {
    if (rank == topology.rank) continue;
    one_local_peer_ = rank;
    watched_.push_back({rank, true, first});
  }
  for (const int rank : partners.listen_to) watched_.push_back({rank, false, first});
}

// In shared memory one beat is for all who look.
void PeerWatch::speak(Pulse& local, Pulse* remote) {
  if (one_local_peer_ >= 0) local.send_beat(one_local_peer_);
  if (!remote) return;
  for (const int rank : speak_to_) remote->send_beat(rank);
}

std::vector<int> PeerWatch::tick(Pulse& local, Pulse* remote) {
  speak(local, remote);
  std::vector<int> silent;
  for (Watched& peer : watched_) {
    if (!peer.is_local && !remote) continue;
    if ((peer.is_local ? local : *remote).take_heard(peer.rank)) {
      peer.silent_beats = 0;
    } else if (is_silence_allowed_) {
      continue;
    } else if (++peer.silent_beats == timeout_ / beat_ + 1) {
      silent.push_back(peer.rank);
    }
  }
  return silent;
}

// Who still has time to join keeps it.
void PeerWatch::allow_silence(bool is_allowed) {
  is_silence_allowed_ = is_allowed;
  for (Watched& peer : watched_) peer.silent_beats = std::min(peer.silent_beats, 0);
}

std::string PeerWatch::words() const {
  return "gave no sign of life for " + format_duration(timeout_) +
         " (HVRUN_PEER_TIMEOUT): it is stopped or its host hangs, or the link to it is dead";
}

}  // namespace hv::runtime
