// SlotTable: the slots of a job and the epoch that numbers them. io_context thread only.
// SPDX-License-Identifier: Apache-2.0
//
// Three layers of identity. A host (HostId) and a slot (SlotId: one process of a host) exist for
// the job's life. A rank is the number of a slot in one epoch, and only there. hvrun and agents
// name hosts by id; the plan and the record name them by their position in the epoch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "launcher/plan/launch_plan.h"
#include "launcher/supervise/hosts/host_link.h"
#include "src/base/clock.h"
#include "src/wire/messages.h"

namespace hv::launcher {

enum class SlotId : std::uint32_t {};

struct Slot {
  enum class Phase { kWaiting, kRunning, kEnded };
  HostId host{};
  Phase phase = Phase::kWaiting;
  std::uint32_t pid = 0;  // 0: not known
  int open_streams = 0;
  std::array<bool, 2> ended_streams{};  // stdout, stderr
  TimePoint last_output{};              // when something that it wrote arrived last
  Duration quiet{};                     // as of its end: for how long nothing had arrived
  wire::StepTimes step_times{};         // as of its end; of a running one, of the last StepsReply

  bool has_ended() const { return phase == Phase::kEnded; }
};

// The hosts and slots that take part from some point in time on. A later epoch replaces it.
struct Epoch {
  std::uint32_t number = 0;
  std::vector<HostId> hosts{};  // in the plan's order; before there is a plan: all hosts
  std::vector<SlotId> slots{};  // by rank
};

class SlotTable {
 public:
  // Before there is a plan.
  void add_host(HostId host) { epoch_.hosts.push_back(host); }
  // Makes a slot for each rank of the plan. hosts: of the job, whose ids are positions in the host
  // list (PlannedHost::entry).
  void begin_epoch(const LaunchPlan& plan, std::size_t hosts);

  const Epoch& epoch() const { return epoch_; }
  std::size_t count() const { return epoch_.slots.size(); }
  Slot& of_rank(int rank) { return slots_[index_of(rank)]; }
  const Slot& of_rank(int rank) const { return slots_[index_of(rank)]; }
  bool runs_on(std::uint32_t rank, HostId host) const {
    return rank < count() && of_rank(static_cast<int>(rank)).host == host;
  }
  // Ascending.
  const std::vector<int>& ranks_on(HostId host) const;
  // none: it has no ranks in this epoch.
  std::optional<int> position_of(HostId host) const;
  auto begin() { return slots_.begin(); }
  auto end() { return slots_.end(); }
  auto begin() const { return slots_.begin(); }
  auto end() const { return slots_.end(); }

 private:
  std::size_t index_of(int rank) const {
    return static_cast<std::size_t>(epoch_.slots[static_cast<std::size_t>(rank)]);
  }

  std::vector<Slot> slots_;  // by id
  Epoch epoch_;
  std::vector<std::vector<int>> ranks_;        // by host id
  std::vector<std::optional<int>> positions_;  // by host id
};

}  // namespace hv::launcher
