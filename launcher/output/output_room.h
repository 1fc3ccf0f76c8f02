// OutputRoom: what ranks wrote goes in as chunks, whole labelled lines come out on the console and
// in files.
// SPDX-License-Identifier: Apache-2.0
//
// Nothing else in hvrun writes to its stdout or stderr while a room exists. Flow control, end to
// end:
//   agent --(at most its credits)--> io_context thread --add()--> writer threads
//         --write(2)--> console, files
//     ^---------- Credit message <------ on_written(rank, bytes) <-------'
// Bytes are reported by on_written once every sink that wants them has written them, or has
// replaced them by a newer state of their line. So memory is bounded by the credits, and a reader
// that stands still slows the ranks whose output it would read, and loses nothing.
//
// Threads: one per console descriptor (one for both where they are the same file), one for all
// regular files of the directory, one for each file there that is none (a FIFO may block for ever,
// in open already). Each does blocking writes and may be left behind blocked; O_NONBLOCK is never
// set on anything.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/output/label.h"

namespace hv::launcher {

struct OutputChunk {
  std::uint32_t rank = 0;
  int stream = 1;                  // 1 stdout, 2 stderr
  std::int64_t wall_clock_ns = 0;  // when it was read from the rank
  std::string bytes;
  bool end = false;      // the stream has ended; bytes come before the end
  bool is_shown = true;  // on the console; --ranks leaves ranks out
};

// The ranks whose output comes.
struct OutputRanks {
  std::size_t count = 0;
  HostsOfRanks hosts{};                       // for labels that have the host, too
  std::optional<std::uint32_t> input_rank{};  // the rank that gets what is typed
};

struct OutputOptions {
  bool label = true;       // "[rank] " before each line
  bool timestamp = false;  // time at the source before each line, after the label
  std::string directory;   // rank.N/stdout and rank.N/stderr there, raw; empty: none
  bool stdout_is_terminal = false;
  bool stderr_is_terminal = false;
  bool colour = false;  // of labels, on terminals only
  int stdin_fd = 0;
  int stdout_fd = 1;
  int stderr_fd = 2;
};

class OutputRoom {
 public:
  // So many bytes of the rank have been written. From a writer thread.
  using Written = std::function<void(std::uint32_t rank, std::size_t bytes)>;
  // A sink cannot be written any more; told once for each, from a writer thread. what: "write to
  // ...", without the system's reason. stream: 1 or 2 for the console, 0 for a file. What this sink
  // gets from here on is dropped (and counts as written, so that nothing waits for it): the caller
  // ends the job.
  using Broken = std::function<void(const std::string& what, int errno_value, int stream)>;

  // Throws Error(kUsage) when the directory cannot be made.
  OutputRoom(OutputOptions options, Written on_written, Broken on_broken);
  // Leaves behind what is blocked, as finish_within(0) does.
  ~OutputRoom();
  OutputRoom(const OutputRoom&) = delete;
  OutputRoom& operator=(const OutputRoom&) = delete;

  // set_ranks, add, note and last_lines: all from one thread; they never block.
  // Before the first chunk.
  void set_ranks(const OutputRanks& ranks);
  void add(OutputChunk chunk);
  // The launcher's own words, to stderr, on lines of their own; a newline is added where there is
  // none.
  void note(std::string text);
  // A line for that rank has been typed on the terminal that is stdin_fd, which has shown it.
  void end_typed_row(std::uint32_t rank);
  // See RecentLines::lines.
  std::vector<std::string> last_lines(std::uint32_t rank) const;
  // These lines are the last that was written where notes go: nothing stands below them.
  bool are_last_lines_above(std::uint32_t rank) const;

  // Waits until all that came before has been written, however long a reader takes. flush_then
  // calls done instead, from a writer thread: for threads that must stay awake meanwhile.
  void flush();
  void flush_then(std::function<void()> done);

  // Writes what is left, beginnings of lines too, and ends the threads. Nothing may be added
  // afterwards.
  void finish();
  // The same, but threads still blocked after the limit are left behind: false. No callback comes
  // afterwards.
  bool finish_within(std::chrono::milliseconds limit);

 private:
  class Rooms;
  std::unique_ptr<Rooms> rooms_;
};

}  // namespace hv::launcher
