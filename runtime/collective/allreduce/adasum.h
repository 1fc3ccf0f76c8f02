// Adasum: how two vectors are combined, and which ranks combine when. Pure.
// SPDX-License-Identifier: Apache-2.0
//
// "Scaling Distributed Training with Adaptive Summation" (Maleki et al., MLSys 2021): of two
// gradients a and b, what one has along the other is counted once, not twice:
//   a (1 - a.b / 2|a|^2) + b (1 - a.b / 2|b|^2)
// Orthogonal ones are added, equal ones give their average.
#pragma once

#include <vector>

#include "runtime/device/kernels.h"

namespace hv::runtime {

struct AdasumFactors {
  double a = 1;
  double b = 1;
};
// A vector of zeros changes nothing: the other is the result.
AdasumFactors adasum_factors(const DotSums& sums);

// One of the stages that all ranks pass through at once.
struct AdasumStage {
  int peer = -1;         // -1: this rank has nothing to do
  bool sends = false;    // its vector to the peer
  bool takes = false;    // the peer's in its place
  bool blends = false;   // the peer's with its own
  bool is_lower = true;  // its own is a, the peer's b
};
// With p the largest power of two up to size: first the ranks from p on give their vectors to those
// p before them, then ranks 1, 2, 4 … p/2 apart exchange theirs, last the first ones get the
// result. As many stages on every rank.
std::vector<AdasumStage> adasum_stages(int rank, int size);

}  // namespace hv::runtime
