// What a shared object beside libhvrun has that carries out collectives on GPUs, such as
// libhvrun-nccl.so.
// SPDX-License-Identifier: Apache-2.0
//
// The two are of one build: its interface is C++, and the only symbol is kGpuPluginSymbol, a
// GpuPluginEntry. Calls of a backend come from whoever holds its engine's progress lock; those of
// the plugin from the engines of all contexts, which may be at once.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "runtime/backend/backend.h"
#include "runtime/device/accelerator.h"
#include "src/base/clock.h"

namespace hv::runtime {

// What all process sets of one job share on GPUs.
struct GpuJob {
  // It ends by an error: for what outlives a set's backends. Any thread may read it.
  std::atomic<bool> has_failed{false};

  // Where the collective begins that was launched last, by device. Of whoever holds the engine's
  // progress lock.
  std::map<int, MomentPtr> last_starts{};
};

// What a rank tells the others of its set, as bytes, before they choose.
struct GpuFacts {
  std::int32_t is_usable = 0;  // 0: words say why
  std::int32_t is_absent = 0;  // it has joined, and has no tensor of its own: next time, perhaps
  std::int32_t rank = 0;       // of the job
  std::int32_t process = 0;    // its number on its host
  std::int32_t version = 0;    // of the library behind the plugin
  std::int32_t asks_to_share = 0;
  std::int32_t shares = 0;  // two ranks may use one GPU
  std::int32_t registers_windows = 0;
  std::int32_t capability = 0;  // ten times the GPU's compute capability
  char gpu[16] = {};            // its UUID, or that of a MIG device
  char card[64] = {};           // in words: its machine and its PCI address; MIG devices share one
  char host[64] = {};           // in words
  char meeting[128] = {};       // of the first member: where the library's own connections begin
  char words[2048] = {};        // of all places that were looked at
};

// Who takes part, as each of them knows it.
struct GpuMembers {
  std::vector<GpuFacts> facts;  // by member
  int self = 0;
  int device = 0;  // this rank's
  std::shared_ptr<GpuJob> job{};
};

class GpuPlugin {
 public:
  virtual ~GpuPlugin() = default;
  // Of the library behind it, which the first call opens. kUnsupported, with words: there is none.
  virtual Status version(std::int32_t* number) = 0;
  // What it carries out on any GPU and by any version; opens nothing.
  virtual bool carries(const CollectiveRequest& request) const = 0;
  // is_first: this rank is the set's first member.
  virtual GpuFacts look(const std::shared_ptr<Accelerator>& accelerator, int device,
                        bool is_first) = 0;
  // Called by all members together. host: carries out what is on the host's memory; it outlives the
  // backend, whose preparation comes next.
  virtual std::unique_ptr<Backend> make(const std::shared_ptr<Accelerator>& accelerator,
                                        const GpuMembers& members, Backend& host) = 0;
  // Until the GPUs have done what backends were given that have gone. False: they go on still.
  virtual bool await_ends(TimePoint deadline) = 0;
};

struct GpuPluginEntry {
  const char* build;
  GpuPlugin* (*plugin)();  // one a process, never destroyed
};
constexpr const char* kGpuPluginSymbol = "hvrun_gpu_plugin";

}  // namespace hv::runtime
