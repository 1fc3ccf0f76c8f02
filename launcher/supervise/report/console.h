// Console: hvrun's own messages. They go through the output room, so that they never tear a rank's
// line. io_context thread only.
// SPDX-License-Identifier: Apache-2.0
//
// This is where foreign text in messages is escaped (printable_lines): that of agents, ranks, ssh,
// schedulers and files. Callers may shorten it or make one line of it before. The output of ranks
// does not come this way, and stays as it is.
#pragma once

#include <string>

#include "launcher/output/output_room.h"
#include "src/base/clock.h"

namespace hv::launcher {

class Console {
 public:
  // room outlives this. is_verbose: report_phase() prints.
  Console(OutputRoom& room, bool is_verbose, TimePoint begun)
      : room_(room), is_verbose_(is_verbose), begun_(begun) {}

  // "hvrun: TEXT"
  void say(const std::string& text) const { write("hvrun: " + text); }
  // advice: may be empty.
  void say_error(const std::string& text, const std::string& advice) const;
  // Lines that name hvrun where they need to; empty ones are left out.
  void say_lines(const std::string& text) const;
  // With the time since the job began.
  void report_phase(const std::string& phase) const;
  // See OutputRoom.
  void end_typed_row(int rank) const { room_.end_typed_row(static_cast<std::uint32_t>(rank)); }
  // A whole line of HV_LOG.
  void log(const std::string& line) const { write(line); }

 private:
  void write(const std::string& text) const;

  OutputRoom& room_;
  const bool is_verbose_;
  const TimePoint begun_;
};

}  // namespace hv::launcher
