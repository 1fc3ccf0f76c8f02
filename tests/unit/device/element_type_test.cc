// Names of types and reductions.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/element_type.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/unit/device/random_tensors.h"

using namespace hv::runtime;

TEST_CASE("every type and reduction has a name") {
  for (const ElementType type : element_types())
    CHECK(std::string(element_type_name(type)) != "unknown type");
  for (int number = 1; number <= 6; ++number)
    CHECK(std::string(reduction_name(static_cast<Reduction>(number))) != "unknown reduction");
}

TEST_CASE("what has no elements yet is no type, and neither is what is reserved") {
  for (const int number : {-1, 0, 11, 12, 13, 16, 99}) CHECK_FALSE(is_element_type(number));
  CHECK(element_types().size() == 12);
  for (const ElementType type : element_types())
    CHECK(is_floating(type) ==
          (std::string(element_type_name(type)).find("float") != std::string::npos));
}
