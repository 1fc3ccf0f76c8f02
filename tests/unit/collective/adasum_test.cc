// The pure parts of Adasum. SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "runtime/collective/allreduce/adasum.h"

namespace hv::runtime {
namespace {

DotSums sums_of(const std::vector<float>& a, const std::vector<float>& b) {
  DotSums sums;
  best_kernels().dot[static_cast<int>(ElementType::kFloat32)](a.data(), b.data(), a.size(), &sums);
  return sums;
}

}  // namespace

TEST_CASE("adasum averages equal vectors, adds orthogonal ones, and leaves what meets a zero") {
  const AdasumFactors equal = adasum_factors(sums_of({3, 4}, {3, 4}));
  CHECK(equal.a == 0.5);
  CHECK(equal.b == 0.5);
  const AdasumFactors orthogonal = adasum_factors(sums_of({1, 0, 2}, {0, 5, 0}));
  CHECK(orthogonal.a == 1);
  CHECK(orthogonal.b == 1);
  const AdasumFactors zero = adasum_factors(sums_of({1, 2}, {0, 0}));
  CHECK(zero.a == 1);
  CHECK(zero.b == 1);
  const AdasumFactors longer = adasum_factors(sums_of({1, 0}, {2, 0}));
  CHECK(longer.a == 0);
  CHECK(longer.b == 0.75);
}

TEST_CASE(
    "adasum's stages match: what one rank sends its peer takes, and the input of all ranks reaches "
    "all") {
  for (int size = 1; size <= 33; ++size) {
    CAPTURE(size);
    std::vector<std::vector<AdasumStage>> stages;
    for (int rank = 0; rank < size; ++rank) stages.push_back(adasum_stages(rank, size));
    std::vector<std::vector<int>> seen(static_cast<std::size_t>(size));  // how often, by rank
    for (std::size_t rank = 0; rank < seen.size(); ++rank) {
      seen[rank].assign(seen.size(), 0);
      seen[rank][rank] = 1;
      CHECK(stages[rank].size() == stages[0].size());
    }
    for (std::size_t i = 0; i < stages[0].size(); ++i) {
      const auto before = seen;
      for (std::size_t rank = 0; rank < seen.size(); ++rank) {
        const AdasumStage& own = stages[rank][i];
        if (own.peer < 0) continue;
        const auto peer_rank = static_cast<std::size_t>(own.peer);
        const AdasumStage& peer = stages[peer_rank][i];
        CHECK(peer.peer == static_cast<int>(rank));
        CHECK(own.sends == (peer.takes || peer.blends));
        CHECK(own.is_lower != peer.is_lower);
        if (own.takes) seen[rank] = before[peer_rank];
        for (std::size_t from = 0; own.blends && from < seen.size(); ++from)
          seen[rank][from] += before[peer_rank][from];
      }
    }
    for (const auto& counts : seen) CHECK(counts == std::vector<int>(counts.size(), 1));
  }
}

}  // namespace hv::runtime
