// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/process_sets.h"

#include <algorithm>
#include <utility>

#include "runtime/engine/negotiation/mismatch.h"
#include "src/base/check.h"
#include "src/base/text.h"

namespace hv::runtime {
namespace {

std::vector<int> every_rank(const Topology& topology) {
  std::vector<int> ranks(static_cast<std::size_t>(topology.size));
  for (int rank = 0; rank < topology.size; ++rank) ranks[static_cast<std::size_t>(rank)] = rank;
  return ranks;
}

SessionConfig session_config(const EngineConfig& config, std::uint32_t set) {
  return {set, config.negotiation, config.deterministic, config.straggler_period};
}

std::string confirmation_name(CollectiveKind kind, std::uint32_t number) {
  return kOwnPrefix + std::string("process set ") + std::to_string(number) +
         (kind == CollectiveKind::kSetMade ? " is made" : " is gone");
}

}  // namespace

ProcessSets::ProcessSets(const EngineConfig& config, const Topology& topology, SetParts all,
                         SetMaker make)
    : config_(config),
      rank_(topology.rank),
      topology_(topology),
      make_(std::move(make)),
      table_(topology.size, kMostSets, kCells) {
  sessions_.emplace(0, std::make_shared<Session>(session_config(config_, 0), every_rank(topology),
                                                 topology, std::move(all)));
}

Status ProcessSets::enqueue(OperationPtr operation) {
  std::shared_ptr<Session> session;
  std::string trouble;
  {
    const std::lock_guard lock(mutex_);
    const bool is_made = making_.count(operation->set) == 0;
    const auto found = sessions_.find(operation->set);
    if (!is_made) {
      trouble = "process set " + std::to_string(operation->set) + " is still being added";
    } else if (found != sessions_.end()) {
      session = found->second;
    } else if (const ProcessSet* set = table_.find(operation->set)) {
      trouble = "rank " + std::to_string(rank_) + " is not in process set " +
                std::to_string(set->number) + ", which has ranks " + format_ranges(set->members());
    } else {
      trouble = std::string("there is no process set ") + std::to_string(operation->set) +
                (table_.next_number() > operation->set ? " any more" : "");
    }
  }
  if (session) return session->enqueue(std::move(operation));
  return {StatusCode::kArgument, tensor_words(operation->name) + ": " + trouble};
}

bool ProcessSets::has_work() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(sessions_.begin(), sessions_.end(),
                     [](const auto& entry) { return entry.second->has_work(); });
}

std::vector<ProcessSet> ProcessSets::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<ProcessSet> sets;
  for (const auto& [number, set] : table_.all())
    if (making_.count(number) == 0) sets.push_back(set);
  return sets;
}

Session* ProcessSets::find(std::uint32_t number) {
  const auto found = sessions_.find(number);
  return found == sessions_.end() ? nullptr : found->second.get();
}

bool ProcessSets::is_member(const ProcessSet& set) const {
  return std::binary_search(set.members().begin(), set.members().end(), rank_);
}

// A stall is told in each set's own decisions: a member that has heard of it in set 0 is ahead of
// another that has not. Ranks that have not made a set yet would not know whose word of leaving it
// is.
void ProcessSets::leave(const Status& why) {
  for (const auto& [number, session] : sessions_) {
    if (making_.count(number) != 0) {
      session->close_unmade();
    } else {
      why.ok() ? session->leave(number == 0 ? "" : all().closing_words())
               : session->end(why.message);
    }
  }
}

bool ProcessSets::are_closed() const {
  return std::all_of(sessions_.begin(), sessions_.end(),
                     [](const auto& entry) { return entry.second->is_closed(); });
}

Attention ProcessSets::attention() const {
  Attention most = Attention::kBell;
  for (const auto& [number, session] : sessions_) most = std::max(most, session->attention());
  return most;
}

TimePoint ProcessSets::next_look() const {
  TimePoint next = TimePoint::max();
  for (const auto& [number, session] : sessions_) next = std::min(next, session->next_look());
  return next;
}

Status ProcessSets::apply_changes() {
  for (const OperationPtr& operation : all().take_changes()) {
    if (Status status = apply(operation); !status.ok()) return status;
  }
  close_removed();
  return Status::success();
}

Status ProcessSets::apply(const OperationPtr& operation) {
  switch (operation->description.kind) {
    case CollectiveKind::kAddSet:
      return add(operation);
    case CollectiveKind::kRemoveSet:
      remove(operation);
      return Status::success();
    default:
      conclude(operation);
      return Status::success();
  }
}

// What the table refuses here it refuses everywhere; what only this rank cannot do ends the job.
Status ProcessSets::add(const OperationPtr& operation) {
  const auto& ranks = operation->description.ranks;
  const ProcessSet* set = nullptr;
  {
    const std::lock_guard lock(mutex_);
    Status status = table_.add({ranks.begin(), ranks.end()}, &set);
    if (!status.ok()) {
      all().complete(operation, std::move(status));
      return Status::success();
    }
    making_.insert(set->number);
  }
  operation->new_set = set->number;
  if (is_member(*set)) {
    SetParts parts;
    if (Status status = make_(*set, &parts); !status.ok()) return status;
    auto session =
        std::make_shared<Session>(session_config(config_, set->number), set->members(),
                                  topology_of_set(topology_, set->members()), std::move(parts));
    const std::lock_guard lock(mutex_);
    sessions_.emplace(set->number, std::move(session));
  }
  confirm(CollectiveKind::kSetMade, set->number, operation);
  return Status::success();
}

void ProcessSets::remove(const OperationPtr& operation) {
  const auto number = static_cast<std::uint32_t>(operation->description.root);
  const ProcessSet* set = table_.find(number);
  if (set == nullptr || number == 0 || !going_.insert(number).second) {
    const std::string why = number == 0 ? ": it is that of all ranks and lives as long as the job"
                            : set       ? ": that is under way already"
                                        : ": there is none of that number";
    return all().complete(
        operation, {StatusCode::kArgument, "remove process set " + std::to_string(number) + why});
  }
  if (Session* const session = find(number)) {
    session->leave("process set " + std::to_string(number) + " has been removed");
    closing_.emplace(number, operation);
  } else {
    confirm(CollectiveKind::kSetGone, number, operation);
  }
}

void ProcessSets::close_removed() {
  std::erase_if(closing_, [this](const auto& entry) {
    const auto& [number, operation] = entry;
    if (!find(number)->is_closed()) return false;
    confirm(CollectiveKind::kSetGone, number, operation);
    return true;
  });
}

void ProcessSets::confirm(CollectiveKind kind, std::uint32_t number, const OperationPtr& change) {
  auto confirmation = std::make_shared<Operation>();
  confirmation->name = confirmation_name(kind, number);
  confirmation->description.kind = kind;
  confirmation->description.root = static_cast<std::int32_t>(number);
  confirmed_by_[confirmation->name] = change;
  const Status status = all().enqueue(confirmation);
  if (!status.ok() && !change->is_done) all().complete(change, status);  // all ranks are leaving
}

void ProcessSets::conclude(const OperationPtr& confirmation) {
  const auto number = static_cast<std::uint32_t>(confirmation->description.root);
  {
    const std::lock_guard lock(mutex_);
    making_.erase(number);
  }
  if (confirmation->description.kind == CollectiveKind::kSetGone) {
    if (Session* const session = find(number)) session->clear_memory();
    const std::lock_guard lock(mutex_);
    sessions_.erase(number);
    going_.erase(number);
    HV_CHECK(table_.remove(number).ok(), "what is gone was there");
  }
  all().complete(confirmation, Status::success());
  const auto change = confirmed_by_.extract(confirmation->name);
  HV_CHECK(!change.empty(), "what is confirmed was a change here");
  all().complete(change.mapped(), Status::success());
}

}  // namespace hv::runtime
