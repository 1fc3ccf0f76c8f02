// Runs the ranks of a small job inside one test: as threads, or as forked processes.
// SPDX-License-Identifier: Apache-2.0
//
// Both have a deadline; when it passes, every rank's last position (RankContext::at) is printed and
// the test ends: a hang is always told with names.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/ranks/forked_store.h"
#include "runtime/backend/backend.h"
#include "runtime/transport/selection.h"
#include "src/contract/contract.h"
#include "src/rendezvous/inproc_store.h"

namespace hv::runtime {

// Ranks per host: {2, 2} is two hosts of two ranks, numbered host by host. All of them live on this
// machine; what is between "hosts" goes over TCP on loopback.
using JobShape = std::vector<int>;
int size_of(const JobShape& shape);
std::vector<RankIdentity> identities_of(const JobShape& shape);
std::string name_of(const JobShape& shape);

enum class RankKind {
  kThreadsOneMapping,  // inproc: the race detector sees all
  kThreadsMemfd,       // shm, as between processes, but in one process
};

struct RankContext {
  int rank;
  int size;
  Fabric& fabric;
  Backend& backend;
  Store& store;
  std::function<void(const std::string&)> at;  // "step 3: allreduce of 17 halfs"

  // Starts and drives to the end; the status is the collective's.
  Status run(CollectiveRequest request);
};

struct RunOptions {
  RankKind kind = RankKind::kThreadsOneMapping;
  FabricConfig config;
  std::string algorithms{};  // as HVRUN_ALGORITHM
  std::chrono::seconds deadline{60};
  bool closes = true;  // leave in order at the end
};

// Every rank runs body in a thread of its own. A std::exception of a body fails the test, from the
// main thread.
void run_ranks(const JobShape& shape, const RunOptions& options,
               const std::function<void(RankContext&)>& body);

// Every rank is a forked child; body's return value is its exit code. Returns what waitpid() said
// of each.
struct ForkedJob {
  explicit ForkedJob(const JobShape& shape, FabricConfig config = {});
  // Forks all ranks; they connect and run body.
  void start(const std::function<int(RankContext&)>& body);
  // SIGKILLs a rank, and tells the others as an agent would if announce is set.
  void kill_rank(int rank, bool announce);
  void signal_rank(int rank, int signal);
  // Waits until a rank has called at() with that text.
  void await_position(int rank, const std::string& position);
  std::vector<int> wait(std::chrono::seconds deadline = std::chrono::seconds(60));
  ~ForkedJob();

  struct Positions;

 private:
  JobShape shape_;
  FabricConfig config_;
  ForkedStoreHub hub_;
  std::vector<RankIdentity> identities_;
  std::vector<int> children_;
  Positions* positions_;
};

}  // namespace hv::runtime
