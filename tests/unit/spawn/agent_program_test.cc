// The agent's file: what cannot be read is an error in words.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/agent_program.h"

#include <doctest/doctest.h>

#include "src/base/error.h"
#include "tests/unit/temporary_folder.h"

using namespace hv;
using namespace hv::tests;

TEST_CASE("an agent that is a folder, or not there, is an error that says so") {
  const TemporaryFolder folder;
  launcher::AgentProgram is_folder(folder / ""), is_absent(folder / "hvrun-agent");
  CHECK_THROWS_WITH_AS((void)is_folder.content(), doctest::Contains("Is a directory"), Error);
  CHECK_THROWS_WITH_AS((void)is_absent.content(), doctest::Contains("No such file"), Error);
}
