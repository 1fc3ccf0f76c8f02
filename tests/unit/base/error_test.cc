// Tests of src/base/error.
// SPDX-License-Identifier: Apache-2.0
#include "src/base/error.h"

#include <doctest/doctest.h>

TEST_CASE("an error's kind is hvrun's exit code for it") {
  const std::pair<hv::ErrorKind, int> cases[] = {{hv::ErrorKind::kUsage, 2},
                                                 {hv::ErrorKind::kStart, 3},
                                                 {hv::ErrorKind::kTimeout, 4},
                                                 {hv::ErrorKind::kHostLost, 5}};
  for (const auto& [kind, code] : cases) {
    CHECK(static_cast<int>(kind) == code);
    CHECK(hv::Error(kind, "what").kind() == kind);
  }
}

TEST_CASE("an error caught as an exception tells what happened, and its hint stays apart") {
  try {
    throw hv::Error(hv::ErrorKind::kStart, "connect to host node1: refused", "start sshd there");
  } catch (const std::exception& caught) {
    CHECK(std::string(caught.what()) == "connect to host node1: refused");
    const auto* error = dynamic_cast<const hv::Error*>(&caught);
    REQUIRE(error != nullptr);
    CHECK(error->hint() == "start sshd there");
  }
}

TEST_CASE("an error needs no hint, and a copy says the same") {
  const hv::Error plain(hv::ErrorKind::kUsage, "what");
  CHECK(plain.hint().empty());
  const hv::Error hinted(hv::ErrorKind::kTimeout, "late", "wait");
  const hv::Error copy = hinted;
  CHECK(std::string(copy.what()) == "late");
  CHECK(copy.hint() == "wait");
  CHECK(copy.kind() == hv::ErrorKind::kTimeout);
}
