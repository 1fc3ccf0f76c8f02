// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/spare_memory.h"

#include <doctest/doctest.h>

using namespace hv::cuda;

TEST_CASE("spare memory of a GPU has few sizes, none smaller than what is wanted") {
  CHECK(SparePieces::size_for(0) == 512);
  CHECK(SparePieces::size_for(513) == 1024);
  CHECK(SparePieces::size_for(1 << 20) == 1 << 20);
  CHECK(SparePieces::size_for((1 << 20) + 1) == 2 << 20);
  CHECK(SparePieces::size_for((4 << 20) + 1) == 6 << 20);
}

TEST_CASE("a spare piece serves whoever asks for its size or little less, once") {
  SparePieces pieces;
  std::byte small, large;
  std::size_t bytes = 0;
  CHECK(pieces.put(&small, 1024));
  CHECK(pieces.put(&large, 18 << 20));
  CHECK(pieces.take(512, &bytes) == nullptr);
  CHECK(pieces.take(16 << 20, &bytes) == &large);
  CHECK(bytes == 18 << 20);
  CHECK(pieces.take(16 << 20, &bytes) == nullptr);
  CHECK(pieces.take(1024, &bytes) == &small);
}

TEST_CASE("no more is spare than there should be, and all of it can be had") {
  SparePieces pieces;
  std::byte one, other;
  CHECK(pieces.put(&one, SparePieces::kMostBytes));
  CHECK_FALSE(pieces.put(&other, 1));
  CHECK(pieces.take_all() == std::vector<std::byte*>{&one});
  CHECK(pieces.take_all().empty());
  CHECK(pieces.put(&other, 1));
}
