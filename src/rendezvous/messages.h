// Messages between a rank and its host's agent over the agent's Unix socket, one struct each.
// SPDX-License-Identifier: Apache-2.0
//
// rank                           agent
//   -> Join                        first; peer credentials have been checked by then
//   <- Welcome | Refused
//   -> Put ... Fence               puts are gathered; the fence ends when every rank of the job has
//   sent it
//   <- FenceDone                   or never, when a rank is lost first: then an Event says so
//   -> Get   <- Value              of what was put before the last fence; one Get at a time
//   -> Lost                        this rank lost contact with another one
//   -> Steps                       how its training goes, in all so far; the newest counts
//   -> Stalled                     it has warned of a tensor that waits for others
//   -> Goodbye                     this rank leaves in order: its end is no loss
//   -> Waits                       instead of Join, alone on its connection: by python/rank_start
//   <- Event, Silence              at any time after Welcome, also between a Get and its Value
// Frames as in wire/frame.h: u32 length of the rest, u8 type, payload.
#pragma once

#include <cstdint>
#include <string>

#include "src/wire/authentication.h"
#include "src/wire/codec.h"
#include "src/wire/stacks.h"
#include "src/wire/step_times.h"

namespace hv::rendezvous {

constexpr std::uint32_t kRankProtocol = 4;
constexpr std::size_t kMaxPayload = 2u << 20;
constexpr std::size_t kMaxKeyBytes = 255;
constexpr std::size_t kMaxValueBytes = 1u << 20;

enum class Type : std::uint8_t {
  kJoin = 1,
  kPut,
  kFence,
  kGet,
  kLost,
  kGoodbye,
  kSteps,
  kStalled,
  kWaits,  // rank to agent
  kWelcome = 65,
  kRefused,
  kFenceDone,
  kValue,
  kEvent,
  kSilence,  // agent to rank
};

struct Join {
  static constexpr Type kType = Type::kJoin;
  std::uint32_t protocol = kRankProtocol;
  std::uint32_t rank = 0;
  std::uint32_t epoch = 0;  // 0 for a process's first join, one more each time it joins again
  void fields(auto& a) { a(protocol, rank, epoch); }
};
struct Welcome {
  static constexpr Type kType = Type::kWelcome;
  static constexpr bool kIsSecret = true;
  JobKey key;
  void fields(auto& a) { a(key); }
};
struct Refused {
  static constexpr Type kType = Type::kRefused;
  std::string reason;
  void fields(auto& a) { a(reason); }
};

struct Put {
  static constexpr Type kType = Type::kPut;
  std::string key;
  std::string value;
  void fields(auto& a) { a(key, value); }
};
struct Fence {
  static constexpr Type kType = Type::kFence;
  std::uint32_t number = 0;  // counts this connection's fences from 1
  void fields(auto& a) { a(number); }
};
struct FenceDone {
  static constexpr Type kType = Type::kFenceDone;
  std::uint32_t number = 0;
  void fields(auto& a) { a(number); }
};

struct Get {
  static constexpr Type kType = Type::kGet;
  std::uint32_t rank = 0;
  std::string key;
  void fields(auto& a) { a(rank, key); }
};
struct Value {
  static constexpr Type kType = Type::kValue;
  bool found = false;
  std::string value;
  void fields(auto& a) { a(found, value); }
};

struct Lost {
  static constexpr Type kType = Type::kLost;
  std::uint32_t rank = 0;
  std::string reason;
  void fields(auto& a) { a(rank, reason); }
};
struct Steps {
  static constexpr Type kType = Type::kSteps;
  wire::StepTimes times;
  void fields(auto& a) { a(times); }
};
struct Stalled {
  static constexpr Type kType = Type::kStalled;
  wire::TensorStall stall;
  void fields(auto& a) { a(stall); }
};
struct Waits {
  static constexpr Type kType = Type::kWaits;
  std::uint32_t rank = 0;
  wire::CallStall stall;
  void fields(auto& a) { a(rank, stall); }
};
struct Goodbye {
  static constexpr Type kType = Type::kGoodbye;
  void fields(auto&) {}
};
// A rank has ended without goodbye, or was given up by its agent.
struct Event {
  static constexpr Type kType = Type::kEvent;
  std::uint32_t rank = 0;
  std::string reason;
  void fields(auto& a) { a(rank, reason); }
};
// The job is being stopped as a whole (Ctrl-Z), so peers' silence tells nothing from now on; or it
// has gone on everywhere.
struct Silence {
  static constexpr Type kType = Type::kSilence;
  bool allowed = false;
  void fields(auto& a) { a(allowed); }
};

}  // namespace hv::rendezvous
