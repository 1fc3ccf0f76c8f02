// Memory of a GPU, or pinned for one, that nobody has, kept for the next one that asks. Pure; one
// thread at a time.
// SPDX-License-Identifier: Apache-2.0
//
// The driver's own way to give memory back waits for all work of the GPU, that of communicators
// too, which may wait for other ranks: no thread that those ranks wait for may go there.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

namespace hv::cuda {

class SparePieces {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{512} << 20;

  // What is asked of the driver where so much is wanted: few sizes, so that pieces fit again.
  static std::size_t size_for(std::size_t wanted);
  // One of that size, or up to an eighth larger; nullptr: there is none. bytes: its size.
  std::byte* take(std::size_t size, std::size_t* bytes);
  // False: there is enough already.
  bool put(std::byte* piece, std::size_t bytes);
  std::vector<std::byte*> take_all();

 private:
  std::multimap<std::size_t, std::byte*> pieces_;  // by size
  std::size_t bytes_ = 0;
};

}  // namespace hv::cuda
