// SPDX-License-Identifier: Apache-2.0
#include "launcher/check/troubleshooting.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "launcher/check/probe.h"
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

TEST_CASE("every verdict has a name of its own, a threshold, a reason and a mend") {
  std::set<std::string> ids;
  for (const Probe* probe : all_probes())
    for (const PossibleFinding& verdict : probe->verdicts) {
      CAPTURE(verdict.id);
      CHECK(ids.insert(verdict.id).second);
      for (const char* words : {verdict.when, verdict.why, verdict.mend})
        CHECK((*words != 0 && std::string(words).find("$ADVICE") == std::string::npos));
    }
}

}  // namespace
}  // namespace hv::launcher
