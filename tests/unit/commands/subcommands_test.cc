// Tests of what subcommands other than check take: their first words are behind their names.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "launcher/commands/env_command.h"
#include "launcher/commands/explain_command.h"
#include "launcher/commands/script_command.h"
#include "src/base/error.h"

using namespace hv::launcher;
using Words = std::vector<std::string>;

namespace {

template <class Function>
std::string error_of(const Function& parse) {
  try {
    parse();
  } catch (const hv::Error& error) {
    CHECK(error.kind() == hv::ErrorKind::kUsage);
    return std::string(error.what()) + " | " + error.hint();
  }
  return "no error";
}

std::string script_error_of(const Words& words) {
  return error_of([&] { parse_script_command(words, {}, [] { return "/here"; }); });
}

}  // namespace

TEST_CASE("hvrun env takes one option of two, or none") {
  CHECK(parse_env_command({}).form == EnvCommand::Form::kTable);
  CHECK(parse_env_command({"--algorithms"}).form == EnvCommand::Form::kAlgorithms);
  CHECK(parse_env_command({"--json"}).form == EnvCommand::Form::kJson);
  CHECK(parse_env_command({"--format", "json"}).form == EnvCommand::Form::kJson);
  CHECK(parse_env_command({"--format=json"}).form == EnvCommand::Form::kJson);
  CHECK(parse_env_command({"--format", "text"}).form == EnvCommand::Form::kTable);
  CHECK(error_of([] { parse_env_command({"--format", "xml"}); }) != "");
  CHECK(error_of([] { parse_env_command({"X=1"}); }).find("hvrun -- env X=1") != std::string::npos);
  CHECK(error_of([] {
          parse_env_command({"--json", "--json"});
        }).find("one option") != std::string::npos);
}

TEST_CASE("hvrun explain takes one folder and a format") {
  const auto explain = [](const Words& words) {
    return std::get<ExplainCommand>(parse_explain_command(words));
  };
  CHECK(explain({"out"}).folder == "out");
  CHECK_FALSE(explain({"out"}).as_json);
  CHECK(explain({"--format", "json", "out"}).as_json);
  CHECK(std::holds_alternative<PrintCommand>(parse_explain_command({"--help"})));
  for (const Words& words : {Words{}, Words{"a", "b"}, Words{"--format", "xml", "a"}})
    CHECK(error_of([&] { parse_explain_command(words); }) != "no error");
}

TEST_CASE("hvrun script tells options of other launchers by what they are there") {
  CHECK(script_error_of({"--nnodes", "2", "t"}).find("that is --nodes here") != std::string::npos);
  CHECK(script_error_of({"--ntasks-per-node=4", "t"}).find("that is --ranks-per-node here") !=
        std::string::npos);
}

TEST_CASE("hvrun script keeps hvrun's options apart from its own, and the program's words") {
  const auto parsed = parse_script_command({"-np", "4", "-x", "A=1", "--site=mine", "t", "-n"}, {},
                                           [] { return "/here"; });
  REQUIRE(std::holds_alternative<ScriptCommand>(parsed));
  const auto& command = std::get<ScriptCommand>(parsed);
  CHECK(command.request.ranks == 4);
  CHECK(command.request.hvrun.typed == Words{"-x", "A=1"});
  CHECK(command.request.program == Words{"t", "-n"});
  CHECK(command.site == "mine");
}
