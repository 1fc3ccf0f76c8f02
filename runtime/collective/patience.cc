// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/patience.h"

namespace hv::runtime {
namespace {

// Of ranks that share a host. An answer over TCP takes about as long as waking a sleeper by the I/O
// thread: who slept in each operation would make each one longer, and so have the others sleep. A
// rank that is alone on its host wakes by itself (SocketBell).
constexpr Duration kYieldBetweenHosts = std::chrono::microseconds(200);

}  // namespace

PatienceConfig patience_for(const Topology& topology) {
  PatienceConfig patience;
  const auto here = static_cast<int>(topology.local_ranks.size());
  if (here == 1 || here > topology.usable_cores) patience.spin = Duration::zero();
  if (topology.leaders.size() > 1 && here > 1) patience.yield = kYieldBetweenHosts;
  return patience;
}

}  // namespace hv::runtime
