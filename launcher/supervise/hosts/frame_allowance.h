// FrameAllowance: which messages an agent may still send over one link. Pure.
// SPDX-License-Identifier: Apache-2.0
//
// An agent on a host that another user controls may send anything. hvrun keeps what arrives, or
// acts on it, so messages have limits: an answer needs its request, reports and heartbeats come at
// a limited rate, notes are counted. Output and results have credit (OutputLedger). What concerns
// ranks is checked against the ranks of the host, and of RankLost each rank's first 4096 are kept
// (EventRouter). The limits are far above what an agent sends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "src/base/clock.h"
#include "src/wire/frame.h"
#include "src/wire/messages.h"

namespace hv::launcher {

class FrameAllowance {
 public:
  FrameAllowance(Duration lost_after, TimePoint begun);

  // hvrun sends this message.
  template <class Message>
  void note_sent(const Message& message) {
    ++sent_[static_cast<std::size_t>(Message::kType)];
    if constexpr (Message::kType == wire::Type::kStdin) note_input(message);
  }
  // Takes a message that has arrived. Returns why it may not be sent, for the user; "" if it may.
  std::string take(const Frame& frame, TimePoint now);

 private:
  // Lets pass `most` at once, and per_second in the long run.
  struct Rate {
    Rate(double at_once, double in_a_second, TimePoint begun)
        : most(at_once), per_second(in_a_second), left(at_once), since(begun) {}
    bool take(TimePoint now);
    double most, per_second, left;
    TimePoint since;
  };
  void note_input(const wire::Stdin& input);
  bool take_answer(wire::Type request);
  bool take_counted(wire::Type type, std::uint64_t most);
  std::uint64_t signals() const;
  std::string take_credit(const Frame& frame);

  std::array<std::uint64_t, 256> sent_{};      // by type; of requests, those without an answer
  std::array<std::uint64_t, 256> received_{};  // by type, where the number counts
  std::uint64_t input_bytes_ = 0;              // for which Credit may come
  std::uint64_t empty_inputs_ = 0;             // Stdin without bytes, without Credit
  Rate pings_, reports_;
};

}  // namespace hv::launcher
