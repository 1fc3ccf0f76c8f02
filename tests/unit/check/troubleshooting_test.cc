// docs/troubleshooting.md's table of all verdicts, made from the probes.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "launcher/check/probe.h"
#include "src/base/text.h"
#include "tests/unit/paths.h"

namespace hv::launcher {
namespace {

constexpr char kBegin[] = "<!-- verdicts: made from launcher/check; see tests/unit/check -->\n";
constexpr char kEnd[] = "<!-- end of verdicts -->\n";

std::string read(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

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
         markdown_cell(verdict.fix) + " |\n";
}

// Markdown: a section a probe, a row a verdict.
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

// HVRUN_WRITE_DOCS=1 makes it anew.
TEST_CASE("docs/troubleshooting.md lists every verdict as the probes have it") {
  const std::string path = tests::source_file("docs/troubleshooting.md");
  const std::string text = read(path);
  const std::size_t begin = text.find(kBegin), end = text.find(kEnd);
  REQUIRE((begin != std::string::npos && end != std::string::npos));
  const std::string wanted =
      text.substr(0, begin) + kBegin + "\n" + verdicts_as_markdown() + text.substr(end);
  if (std::getenv("HVRUN_WRITE_DOCS") != nullptr) std::ofstream(path) << wanted;
  CHECK_MESSAGE(read(path) == wanted,
                "HVRUN_WRITE_DOCS=1 build/dev/bin/unit_check makes docs/troubleshooting.md anew");
}

TEST_CASE("every verdict has a name of its own, a threshold, a reason and a fix") {
  std::set<std::string> ids;
  for (const Probe* probe : all_probes())
    for (const PossibleFinding& verdict : probe->verdicts) {
      CAPTURE(verdict.id);
      CHECK(ids.insert(verdict.id).second);
      for (const char* words : {verdict.when, verdict.why, verdict.fix})
        CHECK((*words != 0 && std::string(words).find("$ADVICE") == std::string::npos));
    }
}

}  // namespace
}  // namespace hv::launcher
