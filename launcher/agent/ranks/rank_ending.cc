// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ranks/rank_ending.h"

#include <algorithm>
#include <utility>

namespace hv::launcher {

void RankEnding::begin(wire::SigtermUse own_use, std::vector<ProcessEntry> descendants) {
  if (state_ != State::kRunning) return;
  own_use_ = own_use;
  program_ = std::move(descendants);
  state_ = program_.empty() ? State::kSignalled : State::kProgramSignalled;
  use_ = program_.empty() ? own_use : wire::SigtermUse::kHandledByDescendant;
}

bool RankEnding::advance(TimePoint at, const std::function<bool(const ProcessEntry&)>& still_runs) {
  if (state_ == State::kProgramSignalled &&
      std::none_of(program_.begin(), program_.end(), still_runs)) {
    state_ = State::kWrapperAlone;
    alone_since_ = at;
  }
  if (state_ != State::kWrapperAlone || at - alone_since_ < kWrapperTime) return false;
  state_ = State::kSignalled;
  use_ = own_use_;
  return true;
}

bool RankEnding::end() { return std::exchange(state_, State::kEnded) != State::kEnded; }

}  // namespace hv::launcher
