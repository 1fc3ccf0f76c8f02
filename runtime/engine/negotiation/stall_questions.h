// Where the ranks stand that a tensor waits for, in their own words: asked down the control tree,
// only when a stall is about to be told.
// SPDX-License-Identifier: Apache-2.0
//
// The root holds the stalls back for a moment, asks at most kMostAsked of the missing ranks, and
// tells the stalls with what was answered by then. Others pass questions down and answers up, and
// keep nothing. Pure; one thread. Cost of a stall: at most kMostAsked small messages an edge and
// direction.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/engine/negotiation/control_messages.h"
#include "runtime/engine/negotiation/control_tree.h"
#include "runtime/engine/negotiation/stall_inspector.h"

namespace hv::runtime {

constexpr std::size_t kMostAsked = 8;
constexpr std::size_t kMostAnswerBytes = 400;

class StallQuestions {
 public:
  using Messages = std::vector<std::pair<int, std::string>>;

  // tree outlives this; patience: how long stalls are held back at most.
  StallQuestions(std::uint32_t epoch, const ControlTree& tree, Duration patience)
      : epoch_(epoch), tree_(tree), patience_(patience) {}

  // Root: these are to be told. None is held back already.
  void ask(std::vector<Waiting> stalls, TimePoint time, Messages* out);
  // Root: they can be told now, with answers; empty: not yet.
  std::vector<Waiting> take(TimePoint time);
  TimePoint next_look() const { return held_.empty() ? TimePoint::max() : deadline_; }
  bool is_holding() const { return !held_.empty(); }

  // This rank is asked where it stands.
  bool is_asked() const { return is_asked_; }
  void answer(const std::string& words, Messages* out);

  // Each false: not what a rank of this build sends.
  bool receive_question(std::string_view bytes, Messages* out);
  bool receive_answer(const ControlTree::Child& from, std::string_view bytes, Messages* out);

 private:
  void pass_down(const StallQuestion& question, Messages* out);
  void keep(std::uint32_t rank, const std::string& words);

  const std::uint32_t epoch_;
  const ControlTree& tree_;
  const Duration patience_;
  bool is_asked_ = false;
  std::uint32_t number_ = 0;                    // of the last question
  std::vector<Waiting> held_;                   // root
  TimePoint deadline_{};                        // root
  std::map<std::uint32_t, std::string> words_;  // root: by rank that was asked; "" until it answers
};

}  // namespace hv::runtime
