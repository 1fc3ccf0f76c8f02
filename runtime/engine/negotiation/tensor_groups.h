// Groups: tensors that travel, fail and complete together.
// SPDX-License-Identifier: Apache-2.0
//
// The root of the control tree keeps what is ready until its group is whole; a group of which one
// tensor is refused is refused as a whole. Where they end, the results of a group wait for each
// other. Pure; one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/engine/negotiation/control_messages.h"
#include "runtime/engine/negotiation/response_cache.h"
#include "runtime/engine/operation.h"
#include "src/base/clock.h"

namespace hv::runtime {

// A tensor that is ready on every rank, which agree on it.
struct ReadyTensor {
  std::uint64_t order = 0;  // of submission on rank 0
  std::string name;
  std::uint64_t number = 0;  // in the response cache; 0: `fresh` says what to tell the ranks
  FreshTensor fresh;
  TensorDescription description;
};

class TensorGroups {
 public:
  // Comes out of take_whole(): at once if it has no group, else with the last of its group.
  void add(ReadyTensor tensor, TimePoint time);
  // At least one if there is any, up to so many bytes of a message.
  std::vector<ReadyTensor> take_whole(std::size_t most_bytes);
  // A tensor of this group does not travel, by that verdict.
  void refuse(const std::string& name, const TensorDescription& description, const Status& verdict);
  // All ranks have joined: what is not whole never will be.
  void refuse_incomplete();
  // What is refused with its group: at least one if there is any, up to so many bytes.
  std::vector<Refusal> take_refusals(std::size_t most_bytes);
  // Something can be taken.
  bool has_output() const { return !whole_.empty() || !refusals_.empty(); }
  // No group waits for the rest of it.
  bool empty() const { return groups_.empty(); }
  // These are not in the response cache any more.
  void spell_out(const std::vector<ResponseCache::Entry>& evicted);

  struct Incomplete {
    std::uint64_t group;
    std::uint32_t size;
    TimePoint since;
    std::vector<std::string> there;
  };
  std::vector<Incomplete> waiting() const;

 private:
  struct Group {
    TimePoint since;
    std::uint32_t size = 0;
    std::vector<ReadyTensor> ready;
  };
  // A group of which something was refused: so is the rest of it, as it comes.
  struct Broken {
    std::uint32_t size = 0;
    std::set<std::string> seen;
    Status why;
  };

  void refuse_group(std::uint64_t number, const Status& why);
  void refuse_tensor(const std::string& name, std::uint64_t group, const Status& why);
  bool is_of_broken(const std::string& name, std::uint64_t group);
  void note_broken(const std::string& name, const TensorDescription& description,
                   const Status& why);

  std::map<std::uint64_t, Group> groups_;
  std::map<std::uint64_t, Broken> broken_;
  std::deque<std::uint64_t> broken_order_;  // the oldest first
  std::deque<ReadyTensor> whole_;
  std::deque<Refusal> refusals_;
};

// "group 7 has waited 60 s: 2 of its 3 tensors are ready on all ranks ('a', 'b'), the others are
// not."
std::string stall_words(const TensorGroups::Incomplete& group, TimePoint time);

// Outcomes of a group's operations, kept until the last is there.
class GroupOutcomes {
 public:
  using Outcome = std::pair<OperationPtr, Status>;
  // What can be told now; one that failed takes its group with it.
  std::vector<Outcome> add(Outcome outcome);

 private:
  std::map<std::uint64_t, std::vector<Outcome>> groups_;
};

}  // namespace hv::runtime
