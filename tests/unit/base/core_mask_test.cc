// Sets of cores. SPDX-License-Identifier: Apache-2.0
#include "src/base/core_mask.h"

#include <doctest/doctest.h>
#include <unistd.h>

using namespace hv;

TEST_CASE("a thread knows the cores that it may run on") {
  const int own = count_cores(own_cores());
  CHECK(own >= 1);
  CHECK(own <= ::sysconf(_SC_NPROCESSORS_CONF));
}

TEST_CASE("cores that stand in both sets count once, whatever the sets' lengths") {
  CoreMask mask{0b1010};
  unite(&mask, {0b0110, 1});
  CHECK(mask == CoreMask{0b1110, 1});
  unite(&mask, {1});
  unite(&mask, {});
  CHECK(mask == CoreMask{0b1111, 1});
  CHECK(count_cores(mask) == 5);
  CHECK(count_cores({}) == 0);
}

TEST_CASE("a mask of cores has their bits and no more words than it takes") {
  CHECK(hv::mask_of({}).empty());
  CHECK(hv::mask_of({0, 2}) == hv::CoreMask{5});
  CHECK(hv::mask_of({64}) == hv::CoreMask{0, 1});
  CHECK(hv::count_cores(hv::mask_of({1, 63, 127})) == 3);
}
