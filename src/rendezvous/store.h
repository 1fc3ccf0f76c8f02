// Store: where the ranks of a job find each other; a key/value exchange with fences.
// SPDX-License-Identifier: Apache-2.0
//
// Each rank puts what others need (addresses, socket names) and fences; after the fence every rank
// can get what any rank put before it. AgentStore talks to the host's agent; InprocStore serves
// ranks that are threads of one process (tests). Calls may block; one thread at a time.
#pragma once

#include <chrono>
#include <string>
#include <variant>

#include "src/base/status.h"
#include "src/wire/authentication.h"
#include "src/wire/stacks.h"
#include "src/wire/step_times.h"

namespace hv {

// What a rank hears about its peers while it runs.
struct PeerEvent {
  enum class Kind {
    kLost,
    kSilenceAllowed,  // of all: the job is being stopped as a whole
    kSilenceOver      // it has gone on everywhere
  };
  int rank = -1;       // kLost
  std::string reason;  // kLost: "ended by signal 9 (Killed)", in words, for messages
  Kind kind = Kind::kLost;
};

// What a rank tells the launcher while it runs.
struct PeerLost {
  int rank = -1;  // with which this one lost contact, for the search of the cause
  std::string reason;
};
struct Leaving {};  // in order: this rank's end from here on is no loss to the others
using RankReport = std::variant<PeerLost, wire::StepTimes, wire::TensorStall, Leaving>;

class Store {
 public:
  virtual ~Store() = default;

  // Visible to others after the next fence. Keys are chosen by the runtime; at most 255 bytes;
  // values 1 MiB.
  virtual Status put(const std::string& key, const std::string& value) = 0;
  // Blocks until every rank has come here as often as this one, or a peer is lost, or timeout.
  virtual Status fence(std::chrono::milliseconds timeout) = 0;
  // What rank put under key before the last fence; kPeerLost when there is
  // none: that rank was not there.
  virtual Status get(int rank, const std::string& key, std::string* value) = 0;
  // The job's key: proves connections between ranks. Never logged.
  virtual Status job_key(JobKey* key) = 0;
  // Where no launcher listens it is lost.
  virtual void report(const RankReport& what) = 0;
  // A descriptor that polls readable when next_event has something; -1 if events never come.
  virtual int event_fd() const = 0;
  // Takes one event without blocking; false when there is none.
  virtual bool next_event(PeerEvent* event) = 0;
};

}  // namespace hv
