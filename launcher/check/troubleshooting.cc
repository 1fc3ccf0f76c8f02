// SPDX-License-Identifier: Apache-2.0
#include "launcher/check/troubleshooting.h"

#include "launcher/check/probe.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// '|' would end a cell, and '<' begin a tag.
std::string markdown_cell(const std::string& words) {
  std::string text;
  for (const char c : words) {
    if (c == '|') text += '\\';
    text += c == '<' ? "&lt;" : std::string(1, c);
  }
  return text;
}

std::string row(const PossibleFinding& verdict) {
  const bool stops = verdict.severity == Severity::kCannotStart;
  return std::string("| `") + verdict.id + "` | " + (stops ? "cannot start" : "harms") + " | " +
         markdown_cell(verdict.when) + " | " + markdown_cell(verdict.why) + " | " +
         markdown_cell(verdict.mend) + " |\n";
}

}  // namespace

std::string verdicts_as_markdown() {
  std::string text;
  for (const Probe* probe : all_probes()) {
    text +=
        std::string("### ") + probe->name + "\n\nLooks at " + probe->looks_at +
        ".\n\n| verdict | | told when | why it matters | what mends it |\n|---|---|---|---|---|\n";
    for (const PossibleFinding& verdict : probe->verdicts) text += row(verdict);
    text += "\n";
  }
  return text;
}

}  // namespace hv::launcher
