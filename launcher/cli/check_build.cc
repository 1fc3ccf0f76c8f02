// SPDX-License-Identifier: Apache-2.0
#include "launcher/cli/check_build.h"

#include <algorithm>

#include "hvrun_version.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::string_view kWithBinding = "PyTorch";

std::string section(const char* title, const std::vector<BuildFact>& facts) {
  std::string text = std::string("\n") + title + ":\n";
  for (const BuildFact& fact : facts)
    text += std::string("    [") + (fact.is_there || fact.is_installed ? "X" : " ") + "] " +
            fact.name + "\n";
  return text;
}

void add_words(const std::vector<BuildFact>& facts, std::vector<std::string>* lines) {
  for (const BuildFact& fact : facts) {
    const std::string line = "    " + fact.name + ": " + fact.words + "\n";
    const bool is_new = std::find(lines->begin(), lines->end(), line) == lines->end();
    if (!fact.words.empty() && is_new) lines->push_back(line);
  }
}

std::string carriers_text(const BuildFact& carriers) {
  if (!carriers.is_there) return "Who carries out what is not known: " + carriers.words + "\n";
  return carriers.words +
         "What stands behind 'else' is for ranks that do not have what comes before it.\n'hvrun "
         "env "
         "--algorithms' has native's ways.\n";
}

}  // namespace

BuildFact nccl_with(const BuildFact& driver, BuildFact library) {
  if (!library.is_there || driver.is_there) return library;
  library.is_there = false;
  library.is_installed = true;
  library.words += " is there, but " + driver.words;
  return library;
}

std::string check_build_text(const BuildFacts& facts) {
  std::vector<std::string> lines;
  for (const auto* each : {&facts.frameworks, &facts.controllers, &facts.operations})
    add_words(*each, &lines);
  return std::string("hvrun v") + HVRUN_VERSION_TEXT + ":\n" +
         section("Available Frameworks", facts.frameworks) +
         section("Available Controllers", facts.controllers) +
         section("Available Tensor Operations", facts.operations) +
         "\nWhat is there, and why not:\n" + join(lines, "") + "\n" + carriers_text(facts.carriers);
}

std::string backends_text(const BackendFacts& facts) {
  std::string text = "BACKEND  HERE  WHAT IT IS, OR WHY NOT\n";
  for (const BuildFact& one : facts.backends) {
    constexpr std::size_t kWidth = 9;
    const std::string name =
        one.name + std::string(kWidth - std::min(kWidth, one.name.size()), ' ');
    text += name + (one.is_there ? "yes   " : "no    ") + one.words + "\n";
  }
  return text + carriers_text(facts.carriers);
}

std::vector<BuildFact> framework_facts(const std::string& printed, const std::string& trouble) {
  std::vector<BuildFact> facts;
  for (const std::string name : {"TensorFlow", "PyTorch", "MXNet"}) {
    BuildFact fact{name, false, "not installed"};
    if (!trouble.empty()) fact.words = "nobody knows: " + trouble;
    for (const std::string& line : split(printed, '\n')) {
      const std::size_t tab = line.find('\t');
      if (tab == std::string::npos || line.substr(0, tab) != name || tab + 1 == line.size())
        continue;
      fact.is_there = name == kWithBinding;
      fact.words = printable(line.substr(tab + 1));
      if (!fact.is_there)
        fact.words +=
            " is installed; hvrun has no binding for it yet, and starts its programs as they are";
    }
    facts.push_back(fact);
  }
  return facts;
}

}  // namespace hv::launcher
