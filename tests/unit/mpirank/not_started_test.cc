// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpirank/not_started.h"

#include <doctest/doctest.h>

namespace hv::launcher {
namespace {

TEST_CASE("not_started comes back as it was") {
  const std::string text = not_started_text({"a", {"find x: on host b: no", "c: d"}});
  const auto read = read_not_started(text);
  REQUIRE(read);
  CHECK((read->host == "a" && read->problem.what == "find x: on host b: no"));
  CHECK(read->problem.hint == "c: d");
}

TEST_CASE("not_started is nothing until all of it is there, nor other words") {
  const std::string text = not_started_text({"a", {"x", "y"}});
  for (std::size_t size = 0; size < text.size(); ++size)
    CHECK_FALSE(read_not_started(std::string_view(text).substr(0, size)));
  CHECK_FALSE(read_not_started(text.substr(1)));
  CHECK_FALSE(read_not_started("\x01hvrun: on host a\n  try: y: z\n"));
}

}  // namespace
}  // namespace hv::launcher
