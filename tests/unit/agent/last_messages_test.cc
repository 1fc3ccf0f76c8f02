// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/mpi/last_messages.h"

#include <doctest/doctest.h>

namespace hv::launcher {
namespace {

TEST_CASE("last messages are read to their end, or up to a limit if they never end") {
  std::size_t reads = 0;
  read_last_messages([&] { return ++reads < 3; });
  CHECK(reads == 3);
  reads = 0;
  read_last_messages([&] { return ++reads > 0; });
  CHECK(reads == kMostLastReads);
}

}  // namespace
}  // namespace hv::launcher
