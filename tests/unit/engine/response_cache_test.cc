// Tests of the response cache.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/response_cache.h"

#include <doctest/doctest.h>

using namespace hv::runtime;

namespace {

TensorDescription of_shape(std::int64_t extent) {
  TensorDescription description;
  description.kind = CollectiveKind::kAllreduce;
  description.shape = {extent};
  return description;
}

}  // namespace

TEST_CASE("an entry is found by name and by number") {
  ResponseCache cache(4);
  CHECK(cache.insert("a", of_shape(3), {1, 2}).empty());
  const auto* entry = cache.find("a");
  REQUIRE(entry != nullptr);
  CHECK(cache.find(entry->number) == entry);
  CHECK(entry->description == of_shape(3));
  CHECK(entry->first_extents == std::vector<std::int64_t>{1, 2});
  CHECK(cache.find("b") == nullptr);
  CHECK(cache.find(std::uint64_t{99}) == nullptr);
}

TEST_CASE("the least recently used entry goes first, and use counts") {
  ResponseCache cache(2);
  cache.insert("a", of_shape(1), {});
  cache.insert("b", of_shape(2), {});
  cache.touch(cache.find("a")->number);
  const auto gone = cache.insert("c", of_shape(3), {});
  REQUIRE(gone.size() == 1);
  CHECK(gone[0].name == "b");
  CHECK(cache.find("a") != nullptr);
  CHECK(cache.size() == 2);
}

TEST_CASE("a name inserted again replaces its entry under a new number") {
  ResponseCache cache(2);
  cache.insert("a", of_shape(1), {});
  const std::uint64_t old = cache.find("a")->number;
  const auto gone = cache.insert("a", of_shape(2), {});
  REQUIRE(gone.size() == 1);
  CHECK(gone[0].number == old);
  CHECK(cache.find("a")->number != old);
  CHECK(cache.find(old) == nullptr);
  CHECK(cache.size() == 1);
}

TEST_CASE("a cache without room keeps nothing") {
  ResponseCache cache(0);
  CHECK(cache.insert("a", of_shape(1), {}).empty());
  CHECK(cache.find("a") == nullptr);
}

TEST_CASE("numbers are never used twice") {
  ResponseCache cache(1);
  std::uint64_t last = 0;
  for (int i = 0; i < 100; ++i) {
    const std::string name = i % 2 == 0 ? "a" : "b";
    cache.insert(name, of_shape(i), {});
    CHECK(cache.find(name)->number > last);
    last = cache.find(name)->number;
  }
}
