// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/start_line.h"

#include <algorithm>

#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kNoiseKept = 4096;

// Functions first, then two walks over the candidate folders: one that looks for this build, one
// that installs it.
//
// - /dev/shm comes last, for containers: with a read-only root it is often all that can be written.
// - A folder counts only if it belongs to this user and is no link, so nobody else can plant a
//   program in /tmp.
// - Before asking for megabytes, put() writes and runs a tiny script: full, read-only and noexec
//   folders show there.
// - The file arrives under a name of its own (the marker) and is renamed when complete and proven
//   to run: launches at the same time, from one machine or several with a shared home, never see
//   half a file.
// - The first cat may die of a full disk; the second drains the rest, so that the stream stays in
//   step.
// - An incomplete copy without an error is the end of the stream: hvrun is gone. Then no other
//   folder is tried, because an empty one would stay there.
// - A file that is there already is this build's by its name, and whole by its size: a disk that
//   was full or a machine that lost power may have left part of one.
// - A new copy makes old ones worthless: those that nobody has used for 30 days go, as far as
//   find(1) knows how.
// - Names begin with hv_, so that no variable of the host's that is exported changes. The umask is
//   put back.
constexpr const char* kScript[] = {
    "hv_mark=@MARKER@; hv_file=agent-@BUILD@; hv_size=@SIZE@; hv_want='@MACHINE@'; hv_why=; "
    "hv_umask=$(umask); umask 077; hv_machine=$(uname -m);",
    "hv_say() { printf '%s %s\\n' \"$hv_mark\" \"$*\"; };",
    "hv_because() { hv_why=\"$hv_why$1: $2; \"; };",
    "hv_ours() { [ -d \"$1\" ] && [ ! -L \"$1\" ] && [ -O \"$1\" ]; };",
    "hv_go() { hv_say run; umask \"$hv_umask\"; exec \"$1/$hv_file\" @WORDS@; };",
    "hv_look() { hv_ours \"$1/$2\" && [ -f \"$1/$2/$hv_file\" ] && [ ! -L \"$1/$2/$hv_file\" ]",
    "&& [ -O \"$1/$2/$hv_file\" ] && [ -x \"$1/$2/$hv_file\" ]",
    "&& [ \"$(wc -c <\"$1/$2/$hv_file\")\" -eq \"$hv_size\" ] && hv_go \"$1/$2\"; };",
    "hv_tidy() { find \"$1\" -maxdepth 1 -type f '(' -name 'agent-*' -o -name '.agent-*' ')' ! "
    "-name \"$hv_file\"",
    "-atime +30 -exec rm -f '{}' + </dev/null >/dev/null 2>&1; };",
    "hv_folder() { hv_text=$({ mkdir -p \"$1\" && { [ -d \"$1/$2\" ] || mkdir \"$1/$2\"; }; } "
    "2>&1)",
    "|| hv_ours \"$1/$2\" || { hv_because \"$1/$2\" \"$hv_text\"; return 1; };",
    "hv_ours \"$1/$2\" || { hv_because \"$1/$2\" \"is not a folder of this user\"; return 1; };",
    "chmod 700 \"$1/$2\" 2>/dev/null; return 0; };",
    "hv_drop() { rm -f \"$hv_new\"; hv_because \"$1\" \"${hv_text:-$2}\"; return 1; };",
    "hv_put() { hv_new=\"$1/.$hv_file.$hv_mark\"; trap 'rm -f \"$hv_new\"; exit 1' 1 2 13 15;",
    "hv_text=$({ printf '#!/bin/sh\\nexit 0\\n' >\"$hv_new\" && chmod 700 \"$hv_new\" && "
    "\"$hv_new\"; } 2>&1)",
    "|| { hv_drop \"$1\" \"no program can be run there\"; return 1; };",
    "hv_say need \"$hv_machine\" \"$1\";",
    "hv_text=$({ head -c \"$hv_size\" | { cat >\"$hv_new\" || cat >/dev/null; }; } 2>&1);",
    "[ \"$(wc -c <\"$hv_new\")\" -eq \"$hv_size\" ] || { hv_drop \"$1\" \"the copy is "
    "incomplete\"; [ -n \"$hv_text\" ] || exit 1; return 1; };",
    "hv_text=$(\"$hv_new\" --version 2>&1 </dev/null) || { hv_drop \"$1\" \"the agent does not "
    "run\"; return 1; };",
    "case \"$hv_text\" in hvrun-agent*) ;; *) hv_drop \"$1\" \"the agent does not run\"; return "
    "1;; esac;",
    "hv_text=$(mv -f \"$hv_new\" \"$1/$hv_file\" 2>&1) || { hv_drop \"$1\" \"the agent cannot be "
    "named\"; return 1; };",
    "trap - 1 2 13 15; hv_tidy \"$1\"; return 0; };",
    "hv_make() { hv_folder \"$1\" \"$2\" && hv_put \"$1/$2\" && hv_go \"$1/$2\"; };",
    "hv_each() { case \"$XDG_CACHE_HOME\" in /*) \"$1\" \"$XDG_CACHE_HOME\" hvrun;; esac;",
    "case \"$HOME\" in /*) \"$1\" \"$HOME/.cache\" hvrun;; esac;",
    "case \"$XDG_RUNTIME_DIR\" in /*) \"$1\" \"$XDG_RUNTIME_DIR\" hvrun;; esac;",
    "\"$1\" \"${TMPDIR:-/tmp}\" \"hvrun-$(id -u)\";",
    "[ -n \"$TMPDIR\" ] || \"$1\" /dev/shm \"hvrun-$(id -u)\"; };",
    "case \"$hv_want\" in ''|\"$hv_machine\") ;; *) hv_say other \"$hv_machine\"; exit 1;; esac;",
    "hv_each hv_look; hv_each hv_make;",
    "hv_say fail \"$(printf '%s' \"$hv_why\" | tr '\\n' ' ')\"; exit 1",
};

void replace(std::string* text, const std::string& what, const std::string& by) {
  text->replace(text->find(what), what.size(), by);
}

std::string_view next_word(std::string_view* text) {
  const std::size_t end = std::min(text->find(' '), text->size());
  const std::string_view word = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return word;
}

BootstrapReply parse_reply(std::string_view line) {
  BootstrapReply reply;
  const std::string_view kind = next_word(&line);
  if (kind == "ready") {
    reply.kind = BootstrapReply::Kind::kShell;
  } else if (kind == "run") {
    reply.kind = BootstrapReply::Kind::kRun;
  } else if (kind == "need") {
    reply.kind = BootstrapReply::Kind::kNeed;
    reply.machine = next_word(&line);
    reply.directory = line;
  } else if (kind == "other") {
    reply.kind = BootstrapReply::Kind::kOther;
    reply.machine = line;
  } else {
    reply.reasons = kind == "fail" ? line : "it gave an answer that hvrun does not know";
    while (!reply.reasons.empty() && (reply.reasons.back() == ' ' || reply.reasons.back() == ';'))
      reply.reasons.pop_back();
  }
  return reply;
}

}  // namespace

// The marker is quoted in two parts, so that a shell that echoes its commands does not print it.
std::string start_line() {
  return "exec /bin/sh -c 'echo hvrun-\"shell ready\"; while read -r hv_line; do eval "
         "\"$hv_line\"; done'";
}

std::string bootstrap_script(const BootstrapScript& script) {
  std::string text;
  for (const char* piece : kScript) text += std::string(piece) + " ";
  replace(&text, "@MARKER@", script.marker);
  replace(&text, "@BUILD@", script.build_id);
  replace(&text, "@SIZE@", std::to_string(script.agent_bytes));
  replace(&text, "@MACHINE@", script.machine);
  replace(&text, "@WORDS@", join(script.agent_words, " "));
  text.back() = '\n';
  return text;
}

void ReplyParser::skip_noise(std::size_t size) {
  noise_bytes_ += size;
  noise_.append(pending_, 0, size);
  if (noise_.size() > kNoiseKept) noise_.erase(0, noise_.size() - kNoiseKept);
  pending_.erase(0, size);
}

std::optional<BootstrapReply> ReplyParser::next() {
  const std::size_t start = pending_.find(marker_);
  if (start == std::string::npos) {
    // The end may be the beginning of a marker.
    if (pending_.size() >= marker_.size()) skip_noise(pending_.size() - marker_.size() + 1);
    return std::nullopt;
  }
  skip_noise(start);
  const std::size_t end = pending_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  const BootstrapReply reply =
      parse_reply(std::string_view(pending_).substr(marker_.size(), end - marker_.size()));
  pending_.erase(0, end + 1);
  return reply;
}

}  // namespace hv::launcher
