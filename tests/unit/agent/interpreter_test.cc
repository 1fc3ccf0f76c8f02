// Programs whose first line names an interpreter.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>

#include "launcher/agent/ranks/rank_command.h"
#include "launcher/facts/program_file.h"
#include "tests/unit/agent/agent_client.h"

using namespace hv;
using namespace hv::tests;
using launcher::rank_programs;

namespace {

void write_program(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  ::chmod(path.c_str(), 0755);
}

}  // namespace

TEST_CASE("a relative interpreter is searched in the working directory, as the kernel does") {
  const TemporaryFolder folder;
  ::mkdir((folder / "bin").c_str(), 0755);
  REQUIRE(::symlink("/bin/sh", (folder / "bin/shell").c_str()) == 0);
  write_program(folder / "program", "#!bin/shell\necho ran\n");
  wire::Launch launch = launch_of({"./program"});
  launch.programs[0].directory = folder.path();
  SUBCASE("found") {
    CHECK_FALSE(rank_programs(launch, {}).problem.has_value());
    AgentClient client;
    client.set_up();
    client.start(launch);
    CHECK(client.output_of(0) == "ran\n");
    CHECK(client.finish() == 0);
  }
  SUBCASE("missing there") {
    write_program(folder / "program", "#! bin/other -x\n");
    const auto problem = rank_programs(launch, {}).problem;
    REQUIRE(problem);
    CHECK(problem->what.find("interpreter bin/other: No such file") != std::string::npos);
  }
}

TEST_CASE("a script with Windows line ends is reported as such, not as a missing interpreter") {
  const TemporaryFolder folder;
  const auto problem_of = [&folder](const std::string& text) {
    write_program(folder / "program", text);
    return launcher::interpreter_problem(folder / "program", folder.path());
  };
  for (const char* text : {"#!/bin/sh\r\necho\r\n", "#! /usr/bin/env sh\r\n", "#!\r\n"}) {
    CAPTURE(text);
    const auto problem = problem_of(text);
    REQUIRE(problem);
    CHECK(problem->what.find("its first line has a Windows line end") != std::string::npos);
    CHECK(problem->hint.find("dos2unix " + (folder / "program")) == 0);
  }
  // An argument with a carriage return is left to the interpreter.
  CHECK_FALSE(problem_of("#!/bin/sh -e\r\n"));
  CHECK_FALSE(problem_of("#!/bin/sh\necho\r\n"));
}
