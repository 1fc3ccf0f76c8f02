// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/check_build.h"

#include <utility>

#include "hvrun_version.h"
#include "launcher/commands/commands.h"
#include "src/base/knob.h"
#include "src/base/text.h"
#include "src/contract/runtime_knobs.h"

namespace hv::launcher {
namespace {

constexpr std::string_view kBoundFramework = "PyTorch";

const BuildFact kGloo{"Gloo", true,
                      "hvrun's own backend, native, has its place: by shared memory and TCP"};
const BuildFact kDdl{"DDL", false, "hvrun has no such backend"};
const BuildFact kCcl{"CCL", false, kDdl.text};

std::string section(const char* title, const std::vector<BuildFact>& facts) {
  std::string text = std::string("\n") + title + ":\n";
  for (const BuildFact& fact : facts)
    text += std::string("    [") + (fact.is_there || fact.is_installed ? "X" : " ") + "] " +
            fact.name + "\n";
  return text;
}

std::string operations_text(const BuildFact& operations) {
  if (!operations.is_there) return "Who carries out what is not known: " + operations.text + "\n";
  return operations.text +
         "What stands behind 'else' is for ranks that do not have what comes before it.\n"
         "'hvrun env --algorithms' has native's algorithms.\n";
}

}  // namespace

BuildFact nccl_with(const BuildFact& driver, BuildFact library) {
  if (!library.is_there || driver.is_there) return library;
  library.is_there = false;
  library.is_installed = true;
  library.text += " is there, but " + driver.text;
  return library;
}

std::string check_build_text(const BuildFacts& facts) {
  std::string reasons;
  const auto add_reasons = [&reasons](const std::vector<BuildFact>& from) {
    for (const BuildFact& fact : from) reasons += "    " + fact.name + ": " + fact.text + "\n";
  };
  add_reasons(facts.frameworks);
  add_reasons({facts.mpi, kGloo, facts.nccl, kDdl, kCcl});
  return std::string("hvrun v") + HVRUN_VERSION_TEXT + ":\n" +
         section("Available Frameworks", facts.frameworks) +
         section("Available Controllers", {facts.mpi, kGloo}) +
         section("Available Tensor Operations", {facts.nccl, kDdl, kCcl, facts.mpi, kGloo}) +
         "\nWhat is there, and why not:\n" + reasons + "\n" + operations_text(facts.operations);
}

// Prints first, then reports a malformed HVRUN_BACKEND: the listing helps to correct it.
int print_check_build(const Environment& environment) {
  const int code = print_report(check_build_text(gather_build_facts(environment)));
  KnobReader(runtime_knobs(), environment).text("HVRUN_BACKEND");
  return code;
}

std::string backends_text(const BuildFacts& facts) {
  std::string text =
      "BACKEND  HERE  WHAT IT IS, OR WHY NOT\n"
      "native   yes   hvrun's own: by shared memory and TCP\n";
  for (const auto& [name, fact] : {std::pair{"mpi      ", &facts.mpi}, {"nccl     ", &facts.nccl}})
    text += std::string(name) + (fact->is_there ? "yes   " : "no    ") + fact->text + "\n";
  return text + operations_text(facts.operations);
}

std::vector<BuildFact> framework_facts(const std::string& printed, const std::string& trouble) {
  std::vector<BuildFact> facts;
  for (const std::string name : {"TensorFlow", "PyTorch", "MXNet", "JAX"}) {
    BuildFact fact{name, false, "not installed"};
    if (!trouble.empty()) fact.text = "unknown: " + trouble;
    for (const std::string& line : split(printed, '\n')) {
      const std::size_t tab = line.find('\t');
      if (tab == std::string::npos || line.substr(0, tab) != name || tab + 1 == line.size())
        continue;
      fact.is_there = name == kBoundFramework;
      fact.text = printable(line.substr(tab + 1));
      if (!fact.is_there)
        fact.text +=
            " is installed; hvrun has no binding for it yet, and starts its programs as they are";
    }
    facts.push_back(fact);
  }
  return facts;
}

}  // namespace hv::launcher
