// ProcessSets: the sessions of this rank, and how sets come and go while the job runs.
// SPDX-License-Identifier: Apache-2.0
//
// Sets are added and removed by operations on set 0, so every rank does it in the same place of the
// same order. Each takes two of those operations: one that is the change, and one that confirms
// it, which starts when every rank has submitted it. So a set is used by nobody before its session
// exists on every member, and its lanes and cells are given to another only when all members have
// closed it.
//
//   add      all submit ──► each makes its session ──► all confirm (made) ──► the caller's is done
//   remove   all submit ──► members close it, what runs ends ──► all confirm (gone) ──► done
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "runtime/engine/process_set_table.h"
#include "runtime/engine/session.h"

namespace hv::runtime {

struct EngineConfig {
  NegotiationConfig negotiation;
  bool deterministic = false;
  Duration straggler_period{};  // as SessionConfig
};

// Makes what a new set's session works with. Not ok: this rank can make none.
using SetMaker = std::function<Status(const ProcessSet&, SetParts*)>;

class ProcessSets {
 public:
  // topology outlives this. all: for set 0. make: called by whoever drives; without it no set can
  // be added.
  ProcessSets(const EngineConfig& config, const Topology& topology, SetParts all, SetMaker make);

  // Any thread. kArgument: a set that is unknown, or that this rank is not in.
  Status enqueue(OperationPtr operation);
  bool has_work() const;
  std::vector<ProcessSet> list() const;

  // The rest is for whoever drives.
  template <class Visit>
  void for_each(Visit visit) {
    for (const auto& [number, session] : sessions_) visit(*session);
  }
  Session& all() { return *sessions_.at(0); }
  // nullptr: none of this rank's.
  Session* find(std::uint32_t number);
  // There was such a set: what still arrives for it came late.
  bool is_past(std::uint32_t number) const { return number < table_.next_number(); }
  // What set 0 has started of additions, removals and confirmations. kOk, or why this rank cannot
  // go on.
  Status apply_changes();
  bool are_closed() const;
  // This rank leaves the job, all of its sets with it. why: not kOk when a stall ends it.
  void leave(const Status& why = Status::success());
  TimePoint next_look() const;
  Attention attention() const;

 private:
  Status apply(const OperationPtr& operation);
  Status add(const OperationPtr& operation);
  void remove(const OperationPtr& operation);
  void confirm(CollectiveKind kind, std::uint32_t number, const OperationPtr& change);
  void conclude(const OperationPtr& confirmation);
  bool is_member(const ProcessSet& set) const;
  void close_removed();

  const EngineConfig config_;
  const int rank_;
  const Topology& topology_;
  const SetMaker make_;
  // Written by whoever drives, who alone may read without it.
  mutable std::mutex mutex_;  // guards table_, sessions_ and making_
  ProcessSetTable table_;
  std::map<std::uint32_t, std::shared_ptr<Session>> sessions_;
  std::set<std::uint32_t> making_;                 // added here, and perhaps not yet elsewhere
  std::set<std::uint32_t> going_;                  // being removed, on all ranks
  std::map<std::uint32_t, OperationPtr> closing_;  // sets that this rank still closes: the removal
  std::map<std::string, OperationPtr> confirmed_by_;  // a confirmation's name: the change
};

}  // namespace hv::runtime
