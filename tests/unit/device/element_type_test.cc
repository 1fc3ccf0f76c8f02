// Names of types and reductions.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/element_type.h"

#include <doctest/doctest.h>

#include <string>

using namespace hv::runtime;

TEST_CASE("every type and reduction has a name") {
  for (int number = 1; number <= 10; ++number)
    CHECK(std::string(element_type_name(static_cast<ElementType>(number))) != "unknown type");
  for (int number = 1; number <= 6; ++number)
    CHECK(std::string(reduction_name(static_cast<Reduction>(number))) != "unknown reduction");
}
