// A rank's heap: pieces lie apart, come back, and grow together again.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/shm/shared_heap.h"

#include <doctest/doctest.h>

#include <map>
#include <random>

#include "runtime/transport/inproc/inproc_source.h"

namespace hv::runtime {
namespace {

constexpr std::size_t kPage = 4096, kBytes = 64 * kPage;

struct Heap {
  MappedMemory memory = inproc_memory("shared_heap_test", kBytes);
  SharedHeap heap{memory.bytes, memory.size, memory.owner};
};

}  // namespace

TEST_CASE("pieces never overlap, whatever comes and goes, and all of it can be had at the end") {
  Heap test;
  std::mt19937 random(3);
  std::map<std::byte*, std::size_t> given;
  for (int step = 0; step < 20000; ++step) {
    if (random() % 2 == 0) {
      const std::size_t bytes = random() % (8 * kPage);
      std::byte* piece = test.heap.allocate(bytes);
      if (piece == nullptr) continue;
      const auto next = given.lower_bound(piece);
      REQUIRE(static_cast<std::size_t>(piece - test.memory.bytes) % kPage == 0);
      REQUIRE(piece + bytes <= test.memory.bytes + kBytes);
      REQUIRE((next == given.end() || piece + bytes <= next->first));
      REQUIRE((next == given.begin() || std::prev(next)->first + std::prev(next)->second <= piece));
      given[piece] = bytes;
    } else if (!given.empty()) {
      auto one = given.begin();
      std::advance(one, random() % given.size());
      REQUIRE(test.heap.release(one->first));
      REQUIRE_FALSE(test.heap.release(one->first));
      given.erase(one);
    }
  }
  for (const auto& [piece, bytes] : given) REQUIRE(test.heap.release(piece));
  CHECK(test.heap.allocate(kBytes) == test.memory.bytes);
  CHECK(test.heap.allocate(1) == nullptr);
}

TEST_CASE("only what lies in the heap as a whole is found there") {
  Heap test;
  std::size_t offset = 77;
  CHECK(test.heap.find(test.memory.bytes, kBytes, &offset));
  CHECK(offset == 0);
  CHECK(test.heap.find(test.memory.bytes + 5, 3, &offset));
  CHECK(offset == 5);
  CHECK_FALSE(test.heap.find(test.memory.bytes, kBytes + 1, &offset));
  CHECK_FALSE(test.heap.find(test.memory.bytes + kBytes - 1, 2, &offset));
  CHECK_FALSE(test.heap.find(test.memory.bytes - 1, 1, &offset));
  CHECK_FALSE(test.heap.find(&offset, 1, &offset));
  CHECK_FALSE(test.heap.release(test.memory.bytes));
}

TEST_CASE("a heap of nothing gives nothing, and more than there is is refused") {
  SharedHeap none(nullptr, 0, nullptr);
  CHECK(none.allocate(0) == nullptr);
  CHECK(none.allocate(SIZE_MAX) == nullptr);
  Heap test;
  CHECK(test.heap.allocate(kBytes + 1) == nullptr);
  CHECK(test.heap.allocate(SIZE_MAX) == nullptr);
}

}  // namespace hv::runtime
