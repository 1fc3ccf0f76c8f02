// Schedules between hosts: an algorithm as the list of steps that one host does for one share.
// SPDX-License-Identifier: Apache-2.0
//
// Pure functions, one for each algorithm; cross_scheduled.cc carries them out. Hosts are
// counted from 0, ranges are of the share. A schedule's steps, peers and order do not depend on the
// share's size: an empty range is sent and received all the same, as nothing.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/collective/lanes.h"

namespace hv::runtime {

struct CrossStep {
  enum class Arrival {
    kFold,    // into what is there
    kFinish,  // the last fold of these elements: scaled and divided along with it
    kCopy     // over what is there
  };
  int to = -1;  // host; -1: nothing to send
  Range out{};
  int from = -1;  // host; -1: nothing to receive
  Range in{};
  Arrival arrival = Arrival::kCopy;
};
using CrossSchedule = std::vector<CrossStep>;
using MakeSchedule = CrossSchedule (*)(int hosts, int me, std::size_t bytes);

// Steps and bytes of each stand in docs/algorithms.md. hosts >= 2.
CrossSchedule ring_schedule(int hosts, int me, std::size_t bytes);
CrossSchedule halving_schedule(int hosts, int me, std::size_t bytes);
CrossSchedule doubling_schedule(int hosts, int me, std::size_t bytes);
CrossSchedule tree_schedule(int hosts, int me, std::size_t bytes);

// For those that pair hosts up by powers of two: the hosts from the largest power of two on (the
// extra ones) first send all they have to a partner among the others, who folds it, and get the
// result from that partner last.
struct PowerOfTwo {
  PowerOfTwo(int hosts, int me);
  bool is_extra() const { return me_ >= core; }
  // The steps around those of the core hosts.
  void fold_extras(std::size_t bytes, CrossSchedule* schedule) const;
  void pay_back_extras(std::size_t bytes, CrossSchedule* schedule) const;

  int core;  // the largest power of two that is at most `hosts`

 private:
  int partner() const;  // -1: none
  int hosts_, me_;
};

}  // namespace hv::runtime
