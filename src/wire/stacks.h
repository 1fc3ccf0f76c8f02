// Where ranks stand: what hvrun asks its agents, and what those tell, as the programs say it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/wire/message_type.h"

namespace hv::wire {

constexpr std::size_t kMaxStackBytes = 64 << 10;    // of one process, of each kind
constexpr std::size_t kMaxStacksBytes = 16u << 20;  // of a reply's texts
constexpr std::size_t kMaxStalledRanks = 64;        // that a message names
constexpr std::size_t kMaxStalledName = 200;
constexpr std::size_t kMaxCallText = 200;

// Of ranks that run; a later request ends an earlier one, which is answered with what there is.
struct StackRequest {
  static constexpr Type kType = Type::kStackRequest;
  std::uint32_t number = 0;
  std::vector<std::uint32_t> ranks;  // empty: all
  double timeout_s = 5;              // for all of it
  void fields(auto& a) { a(number, ranks, timeout_s); }
};

// One process of a rank, which may have several.
struct RankStacks {
  std::uint32_t rank = 0;
  std::uint32_t pid = 0;
  std::string name;     // "python3"
  std::string state;    // "is stopped (SIGSTOP)", in the kernel's sense; empty: nothing special
  std::string python;   // as faulthandler writes it
  std::string native;   // as eu-stack or gdb writes it
  std::string problem;  // why one of them is missing, and what to do about it; may be empty
  void fields(auto& a) { a(rank, pid, name, state, python, native, problem); }
};
struct StackReply {
  static constexpr Type kType = Type::kStackReply;
  std::uint32_t number = 0;
  std::vector<RankStacks> stacks;
  void fields(auto& a) { a(number, stacks); }
};

// A rank has warned that a tensor waits for others. From that rank to its agent, and on to hvrun.
struct TensorStall {
  double waited_s = 0;
  std::vector<std::uint32_t> missing;  // of the job, at most kMaxStalledRanks
  std::uint32_t more_missing = 0;      // beside those
  std::string name;                    // of the tensor, at most kMaxStalledName bytes
  bool is_plausible() const {
    return waited_s >= 0 && !missing.empty() && missing.size() <= kMaxStalledRanks &&
           name.size() <= kMaxStalledName;
  }
  void fields(auto& a) { a(waited_s, missing, more_missing, name); }
};
struct TensorStalled {
  static constexpr Type kType = Type::kTensorStalled;
  std::uint32_t by = 0;
  TensorStall stall;
  void fields(auto& a) { a(by, stall); }
};

// A rank waits in a call of torch.distributed. Repeated while it waits, so that the waits of other
// ranks that have begun meanwhile are known to belong to the same stall.
struct CallStall {
  double waited_s = 0;
  bool is_too_long = false;  // StallTimes's call_end_s has passed
  std::string call;          // "torch.distributed.all_reduce"
  std::string place;         // "train.py:12", of the program; may be empty
  bool is_plausible() const {
    return waited_s >= 0 && call.size() <= kMaxCallText && place.size() <= kMaxCallText;
  }
  void fields(auto& a) { a(waited_s, is_too_long, call, place); }
};
struct CallStalled {
  static constexpr Type kType = Type::kCallStalled;
  std::uint32_t by = 0;
  CallStall stall;
  void fields(auto& a) { a(by, stall); }
};

}  // namespace hv::wire
