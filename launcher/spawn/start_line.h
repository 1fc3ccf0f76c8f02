// What hvrun says to a host so that an agent runs there, and how it reads the answers. Pure: no
// I/O.
// SPDX-License-Identifier: Apache-2.0
//
//   hvrun -> login shell   start_line(), as the remote command: turns any login shell into /bin/sh
//   hvrun -> login shell   a few lines that mean nothing to /bin/sh: start-up files may read them
//   host  -> hvrun         "<kShellMarker> ready"            start-up files are through
//   hvrun -> /bin/sh       bootstrap_script(), one line on stdin
//   host  -> hvrun         "<marker> run"                    the next byte is the agent's
//                          "<marker> need <machine> <dir>"   send the agent's file now, agent_bytes
//                                                            in all
//                          "<marker> other <machine>"        its agent could not run here: another
//                                                            kind of machine
//                          "<marker> fail <reasons>"         no folder can hold and run the agent
// After "need" comes another answer. What lies there already is run only if it has the agent's
// size. hvrun sends nothing but the file, and that only when asked, so nobody on the host can read
// too far. The marker is random: what start-up files print before it is noise. Until "ready" hvrun
// sends nothing that must arrive, because start-up files that read standard input would take it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hv::launcher {

// Valid and of the same meaning in sh, bash, zsh, csh, tcsh, fish.
std::string start_line();

// The word before "ready".
inline constexpr const char* kShellMarker = "hvrun-shell";

struct BootstrapScript {
  std::string marker;    // letters and digits
  std::string build_id;  // names the agent's file; letters, digits, '.', '-', '_'
  std::size_t agent_bytes = 0;
  std::string machine;                     // what `uname -m` must say there; empty: anything
  std::vector<std::string> agent_words{};  // its arguments: letters, digits, '-', '.'
};

// One line for /bin/sh, with its newline.
std::string bootstrap_script(const BootstrapScript& script);

struct BootstrapReply {
  enum class Kind { kShell, kRun, kNeed, kOther, kFail };
  Kind kind = Kind::kFail;
  std::string machine;    // kNeed, kOther: the host's uname -m
  std::string directory;  // kNeed: where the file will lie
  std::string reasons;    // kFail: "folder: reason; folder: reason"
};

// Finds the answers in what a host prints. Feed it, ask next() until it has nothing more.
class ReplyParser {
 public:
  static constexpr std::size_t kMaxNoise =
      16 << 20;  // bytes without an answer; only the last few are kept
  static constexpr std::size_t kMaxReply = 64 << 10;

  explicit ReplyParser(std::string marker) : marker_(std::move(marker) + " ") {}
  void feed(std::string_view bytes) { pending_ += bytes; }
  // Answers that follow have this marker.
  void expect(const std::string& marker) { marker_ = marker + " "; }
  std::optional<BootstrapReply> next();
  // The host prints without end: nothing good will follow.
  bool flooded() const { return noise_bytes_ > kMaxNoise || pending_.size() > kMaxReply; }
  // The last of what was printed outside answers, for messages.
  std::string noise() const { return noise_ + pending_; }
  // After kRun: what has already come from the agent.
  std::string take_rest() { return std::move(pending_); }

 private:
  void skip_noise(std::size_t size);

  std::string marker_;
  std::string pending_;
  std::string noise_;
  std::size_t noise_bytes_ = 0;
};

}  // namespace hv::launcher
