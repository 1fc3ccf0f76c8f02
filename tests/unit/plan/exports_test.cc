// Tests of what -x gives to ranks.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/exports.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "launcher/plan/common_environment.h"
#include "src/base/error.h"
#include "src/contract/contract.h"

using namespace hv::launcher;
using Variables = std::vector<std::string>;
using Form = Export::Form;

namespace {

const hv::Environment kHere =
    hv::Environment::from_entries({"A=own", "EMPTY=", "HOME=/root", "P=0", "P_A=1", "P_B=2", "PQ=3",
                                   "HVRUN_RANK=7", "RANK=7", "HVRUN_FUSION_THRESHOLD=1M"});

Variables resolved(const std::vector<std::string>& texts) {
  return parse_exports(texts).resolve(kHere).entries();
}

// "" if there is none.
std::string error_of(const auto& action) {
  try {
    action();
  } catch (const hv::Error& error) {
    CHECK(error.kind() == hv::ErrorKind::kUsage);
    return std::string(error.what()) + " | " + error.hint();
  }
  return {};
}

std::string parse_error(const std::string& text) {
  return error_of([&text] { parse_exports({text}); });
}

}  // namespace

TEST_CASE("an export is a value, a name of hvrun's own variables, or a pattern of them") {
  struct Case {
    const char* text;
    Export parsed;
  };
  for (const auto& [text, parsed] : {
           Case{"A=1", {Form::kValue, "A", "1"}},
           Case{"A=", {Form::kValue, "A", ""}},
           Case{"A=b=c", {Form::kValue, "A", "b=c"}},
           Case{"A*=1", {Form::kValue, "A*", "1"}},
           Case{"A= 1\n2", {Form::kValue, "A", " 1\n2"}},
           Case{"A", {Form::kName, "A"}},
           Case{"-np", {Form::kName, "-np"}},
           Case{"P_*", {Form::kPattern, "P_*"}},
           Case{"*", {Form::kPattern, "*"}},
       }) {
    CAPTURE(text);
    const Exports exports = parse_exports({text});
    REQUIRE(exports.list().size() == 1);
    CHECK(exports.list()[0] == parsed);
  }
}

TEST_CASE("an export without a name is refused when it is parsed") {
  for (const std::string& text : {std::string(), std::string("=x"), std::string("=x=y"),
                                  std::string("="), std::string("A\0B", 3)}) {
    CAPTURE(text);
    const std::string error = parse_error(text);
    CHECK(error.find("' names no variable | expected NAME, NAME=VALUE or 'PREFIX_*'") !=
          std::string::npos);
  }
  CHECK(parse_error("=x").starts_with("-x '=x' names no variable"));
}

TEST_CASE("every name of the contract is refused, with and without a value") {
  for (const std::string& name : hv::contract_names()) {
    CAPTURE(name);
    const std::string expected = "-x " + name +
                                 ": hvrun itself sets this variable for each rank | " +
                                 (name == "MASTER_PORT" ? "use --master-port" : "leave it out");
    CHECK(parse_error(name) == expected);
    CHECK(parse_error(name + "=1") == expected);
    CHECK(parse_error(name + "S=1") == "");
  }
}

TEST_CASE("exports resolve to values, to hvrun's own, and to all that a pattern matches") {
  CHECK(resolved({}) == Variables{});
  CHECK(resolved({"N=1", "A", "EMPTY"}) == Variables{"A=own", "EMPTY=", "N=1"});
  CHECK(resolved({"P_*"}) == Variables{"P_A=1", "P_B=2"});
  CHECK(resolved({"P*"}) == Variables{"P=0", "PQ=3", "P_A=1", "P_B=2"});
  CHECK(resolved({"NOPE_*"}) == Variables{});
}

TEST_CASE("a pattern never gives the contract that hvrun itself has") {
  CHECK(resolved({"HVRUN_*"}) == Variables{"HVRUN_FUSION_THRESHOLD=1M"});
  CHECK(resolved({"RANK*"}) == Variables{});
  const Variables all = resolved({"*"});
  CHECK(all.size() == kHere.all().size() - 2);
}

TEST_CASE("of two exports of one name the later counts, whatever their forms") {
  CHECK(resolved({"A=1", "A=2"}) == Variables{"A=2"});
  CHECK(resolved({"A=1", "A"}) == Variables{"A=own"});
  CHECK(resolved({"A", "A=1"}) == Variables{"A=1"});
  CHECK(resolved({"P_A=9", "P_*"}) == Variables{"P_A=1", "P_B=2"});
  CHECK(resolved({"P_*", "P_A=9"}) == Variables{"P_A=9", "P_B=2"});
  Exports exports = parse_exports({"A=1", "B=1"});
  exports.add_all(parse_exports({"B=2"}));
  exports.add_value("C", "3");
  CHECK(exports.resolve({}).entries() == Variables{"A=1", "B=2", "C=3"});
}

TEST_CASE("an export of a variable that hvrun does not have is an error with its remedy") {
  const Exports exports = parse_exports({"A=1", "MISSING"});
  CHECK(error_of([&] { exports.resolve(kHere); }) ==
        "-x MISSING: this variable is not set here | set it, or write -x MISSING=VALUE");
}

TEST_CASE("patterns that match nothing are named in their order") {
  CHECK(parse_exports({"A", "P_*", "X=*", "NOPE_*", "RANK*", "HVRUN_F*", "N*"})
            .unmatched_patterns(kHere) == Variables{"NOPE_*", "RANK*", "N*"});
}

TEST_CASE("-x beats hvrun's own variables and host variables, and a program's beats the job's") {
  JobSpec spec;
  spec.environment.exports = parse_exports({"A=job", "HOME", "P_A=job"});
  spec.programs = {{{"serve"}, "/", 1, {}}, {{"train"}, "/", 1, parse_exports({"A=program"})}};
  const CommonEnvironment environment = common_environment(spec, kHere);
  const hv::Environment& common = environment.variables.as_environment();
  CHECK(common.get("A") == "job");
  CHECK(common.get("HOME") == "/root");
  CHECK(common.get("P_A") == "job");
  CHECK(common.get("P_B") == "2");
  CHECK(environment.exported == std::set<std::string, std::less<>>{"A", "HOME", "P_A"});
  REQUIRE(environment.program_variables.size() == 2);
  CHECK(environment.program_variables[0].is_empty());
  CHECK(environment.program_variables[1].entries() == Variables{"A=program"});
}
