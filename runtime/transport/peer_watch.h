// PeerWatch: which peers have been silent for so long that they count as lost (HVRUN_PEER_TIMEOUT).
// SPDX-License-Identifier: Apache-2.0
//
// Every rank gives a sign of life at each beat, a tenth of the timeout. Silence is counted in beats
// of this process's own timer: while this process is stopped, with its job (Ctrl-Z) or alone, there
// are none, so that time does not count; nor does time in which the agent has announced that the
// whole job is being stopped, since hosts stop and go on one after the other. Inside a host
// everybody watches everybody, in shared memory. Between hosts a rank speaks to one rank of each
// other host, and watches those whose counterpart it is; what it finds all ranks of its host learn.
// So beats between hosts do not grow with the ranks of a host.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "runtime/transport/fabric.h"
#include "runtime/transport/transport.h"

namespace hv::runtime {

constexpr int kBeatsOfTimeout = 10;

struct WatchPartners {
  std::vector<int> speak_to;   // on other hosts
  std::vector<int> listen_to;  // on other hosts
};
// The rank with local index i is watched, on a host of n ranks, by the one with local index i % n.
WatchPartners watch_partners(const Topology& topology);

class PeerWatch {
 public:
  // timeout: zero: nobody is ever given up, and there are no beats. patience: how much longer a
  // peer may take to its first sign, since it may still be joining.
  PeerWatch(const Topology& topology, std::chrono::milliseconds timeout,
            std::chrono::milliseconds patience);

  // Zero: none.
  std::chrono::milliseconds beat() const { return beat_; }
  // Gives a sign of life; once at the beginning, so that nobody need wait for the first beat.
  void speak(Pulse& local, Pulse* remote);
  // At each beat: speaks, listens, and returns who has just become silent for too long. remote may
  // be nullptr.
  std::vector<int> tick(Pulse& local, Pulse* remote);
  // From now on nobody's silence counts; or again it does, from its beginning.
  void allow_silence(bool is_allowed);
  // To stand behind "rank N".
  std::string words() const;

 private:
  struct Watched {
    int rank;
    bool is_local;
    int silent_beats;  // below zero: it has the time to join besides
  };

  const std::chrono::milliseconds timeout_;
  const std::chrono::milliseconds beat_;
  std::vector<int> speak_to_;
  int one_local_peer_ = -1;
  std::vector<Watched> watched_;
  bool is_silence_allowed_ = false;
};

}  // namespace hv::runtime
