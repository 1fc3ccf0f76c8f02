// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/spare_memory.h"

#include <algorithm>
#include <bit>

namespace hv::cuda {
namespace {

constexpr std::size_t kLeast = 512;
constexpr std::size_t kLarge = std::size_t{1} << 20, kStep = std::size_t{2} << 20;

}  // namespace

std::size_t SparePieces::size_for(std::size_t wanted) {
  if (wanted <= kLarge) return std::bit_ceil(std::max(wanted, kLeast));
  return (wanted + kStep - 1) / kStep * kStep;
}

std::byte* SparePieces::take(std::size_t size, std::size_t* bytes) {
  const auto found = pieces_.lower_bound(size);
  if (found == pieces_.end() || found->first > size + size / 8) return nullptr;
  std::byte* const piece = found->second;
  *bytes = found->first;
  bytes_ -= found->first;
  pieces_.erase(found);
  return piece;
}

bool SparePieces::put(std::byte* piece, std::size_t bytes) {
  if (bytes_ + bytes > kMostBytes) return false;
  bytes_ += bytes;
  pieces_.emplace(bytes, piece);
  return true;
}

std::vector<std::byte*> SparePieces::take_all() {
  std::vector<std::byte*> all;
  for (const auto& [bytes, piece] : pieces_) all.push_back(piece);
  pieces_.clear();
  bytes_ = 0;
  return all;
}

}  // namespace hv::cuda
