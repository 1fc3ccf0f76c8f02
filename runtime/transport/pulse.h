// Pulse: signs of life between this rank and some of its peers, beside what they say anyway.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hv::runtime {

// Implemented by transports, for the peers that they reach. Never blocks; whoever drives calls.
class Pulse {
 public:
  virtual ~Pulse() = default;
  virtual void send_beat(int peer) = 0;
  // Whether the peer has given a sign of life since the last call: a beat or any other bytes.
  virtual bool take_heard(int peer) = 0;
};

}  // namespace hv::runtime
