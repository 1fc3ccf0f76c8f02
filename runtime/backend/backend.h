// Backend: who carries out a whole collective. The engine decides what and when; a backend does it.
// SPDX-License-Identifier: Apache-2.0
//
// start() never blocks and is called by one thread at a time (whoever holds the engine's progress
// lock).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/collective/collective.h"
#include "src/base/clock.h"

namespace hv::runtime {

// Holds an error back that may be the consequence of a peer's end, so that the agent that knows
// whose end it was reports it first: all survivors then get the same reason.
class PeersEnd {
 public:
  // From the first call on for 3 s.
  bool may_yet_be_told() {
    constexpr std::chrono::seconds kUntilItIsTold{3};
    first_trouble_ = std::min(first_trouble_, now());
    return now() < first_trouble_ + kUntilItIsTold;
  }

 private:
  TimePoint first_trouble_ = TimePoint::max();
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const char* name() const = 0;
  virtual bool supports(const CollectiveRequest& request) const = 0;
  // What is to be done by all ranks before the first request of this kind, which it supports, is
  // started; until that is done nothing else is started. nullptr: nothing.
  virtual std::unique_ptr<Collective> prepare(const CollectiveRequest& /*first*/) {
    return nullptr;
  }
  // Any thread, before such a request is negotiated: of its segments only how many there are and
  // their device is known. kUnsupported: what carries it out has another of this rank's devices,
  // and can have one.
  virtual Status check_device(const CollectiveRequest& /*request*/, int /*device*/) const {
    return Status::success();
  }
  // Collectives are started in the same order on every rank; several may be under way at once.
  virtual std::unique_ptr<Collective> start(CollectiveRequest request) = 0;
  // Asked now and then while it is being prepared, or devices do what is done for the host. An
  // error ends the job.
  virtual Status watch() { return Status::success(); }
  // What to look at when that takes long, for messages.
  virtual std::string advice() const { return {}; }
  // The job has failed: what devices still wait for will not come. True: they will be given nothing
  // more that uses a caller's memory. Asked again until then, and nothing else any more.
  virtual bool abandon() { return true; }
};

// One end of a transfer on which both have agreed; neither the sender nor its size is in doubt.
struct PairRequest {
  bool sends = false;
  int peer = 0;  // the other rank of the job
  // The same at both ends. No other of the sender's process has it, in this job or another.
  std::uint64_t number = 0;
  Segment bytes;                   // count: of bytes; on the host
  std::vector<MemoryPtr> keeps{};  // as CollectiveRequest's
};

// What moves the bytes of sends and receives instead of the fabric.
class PairCarrier {
 public:
  virtual ~PairCarrier() = default;
  // Never blocks. It goes on beside all others, whatever their order at the other end. Destroyed
  // before it is done, it is given up: what the peer sends is not waited for, and that memory is
  // not touched any more.
  virtual std::unique_ptr<Collective> carry(PairRequest request) = 0;
};

// The first of several backends that supports a request.
class ChainBackend : public Backend {
 public:
  // They outlive it.
  explicit ChainBackend(std::vector<Backend*> backends) : backends_(std::move(backends)) {}

  const char* name() const override { return "chain"; }
  bool supports(const CollectiveRequest& request) const override {
    return find(request) != nullptr;
  }
  std::unique_ptr<Collective> prepare(const CollectiveRequest& first) override {
    return find(first)->prepare(first);
  }
  std::unique_ptr<Collective> start(CollectiveRequest request) override {
    Backend* const found = find(request);
    return found->start(std::move(request));
  }

 private:
  Backend* find(const CollectiveRequest& request) const {
    for (Backend* const one : backends_)
      if (one->supports(request)) return one;
    return nullptr;
  }

  const std::vector<Backend*> backends_;
};

}  // namespace hv::runtime
