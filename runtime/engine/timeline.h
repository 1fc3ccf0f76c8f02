// Timeline: what happens to each tensor on this rank, for people to look at (Perfetto,
// chrome://tracing).
// SPDX-License-Identifier: Apache-2.0
//
// A row for each tensor:
//   NEGOTIATE_ALLREDUCE  from when the engine takes it until all ranks have it; a mark for each
//                        rank that is heard of ("rank 3 is ready": rank 0 hears of its host's ranks
//                        and of each other host as a whole)
//   ALLREDUCE            from then until it is complete; inside: QUEUE until the data path is free,
//                        then REDUCE or EXCHANGE
// and a bar for each bucket of fused tensors. Any thread may call anything. Off, it costs one look
// at a flag.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "runtime/engine/operation.h"
#include "runtime/engine/timeline_file.h"

namespace hv::runtime {

class Timeline {
 public:
  // Waits for the file as open(2) does, nobody else meanwhile. kArgument: one is being written
  // already; kSystem: the file cannot be made.
  Status start(const std::string& path, int rank);
  // kOk also where none is. kSystem: not all could be written.
  Status stop();
  bool is_on() const { return is_on_.load(std::memory_order_relaxed); }
  // Events that no file has, of all timelines so far.
  std::uint64_t dropped() const;

  // The stages of one operation, in order. Each does nothing while the timeline is off.
  void taken(const Operation& operation);
  void heard_of(std::uint32_t set, const std::string& name, const std::string& ranks);
  void decided(const Operation& operation, std::size_t fused);
  void begun(const Operation& operation);
  void completed(const Operation& operation);
  // A bucket of more than one tensor: the first of them.
  void bucket_begun(const Operation& first, std::size_t tensors, std::int64_t bytes);
  void bucket_ended(const Operation& first);

  static constexpr std::size_t kMostTracks = 1 << 16;  // names; tensors beyond have no row

 private:
  // A row, and which of the bars that are open in it the file has (the lowest bit: the inner one).
  struct Track {
    std::uint32_t number = 0;
    std::uint32_t recorded = 0;
    int depth = 0;
  };
  // With the lock, if the timeline is on; throws nothing.
  template <class Action>
  void record(Action action);
  // With mutex_ held; nullptr: no room for one more.
  Track* track(std::uint32_t set, const std::string& name);
  void open_bar(Track* track, const char* label, std::string arguments = {});
  void close_bar(Track* track);
  bool push(TimelineEvent event, bool is_end = false);

  std::atomic<bool> is_on_{false};
  mutable std::mutex mutex_;  // guards the rest; the file's own is taken inside it
  std::unique_ptr<TimelineFile> file_;
  bool is_starting_ = false;                       // by a thread that opens the file
  std::unordered_map<std::string, Track> tracks_;  // by set and name
  std::uint64_t dropped_before_ = 0;
  std::uint64_t unrecorded_ = 0;  // of tensors beyond kMostTracks, or for want of memory
};

// Where this rank writes its timeline: pattern with its number for each %r; without %r rank 0
// writes alone. nullopt: it writes none.
std::optional<std::string> timeline_path(const std::string& pattern, int rank);

}  // namespace hv::runtime
