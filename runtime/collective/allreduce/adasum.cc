// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/allreduce/adasum.h"

#include <bit>

namespace hv::runtime {
namespace {

double sum_of(const double (&lanes)[kDotLanes]) {
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

double factor(double ab, double norm) { return norm == 0 ? 1 : 1 - ab / norm / 2; }

}  // namespace

AdasumFactors adasum_factors(const DotSums& sums) {
  const double ab = sum_of(sums.ab);
  return {factor(ab, sum_of(sums.aa)), factor(ab, sum_of(sums.bb))};
}

std::vector<AdasumStage> adasum_stages(int rank, int size) {
  const int paired = static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
  const int more = size - paired;
  std::vector<AdasumStage> stages;
  if (more > 0) {
    AdasumStage fold;
    if (rank >= paired) fold = {rank - paired, true, false, false, false};
    if (rank < more) fold = {rank + paired, false, false, true, true};
    stages.push_back(fold);
  }
  for (int distance = 1; distance < paired; distance *= 2) {
    const bool is_lower = (rank & distance) == 0;
    stages.push_back(rank < paired ? AdasumStage{rank ^ distance, true, false, true, is_lower}
                                   : AdasumStage{});
  }
  if (more > 0) {
    AdasumStage hand_back;
    if (rank >= paired) hand_back = {rank - paired, false, true, false, false};
    if (rank < more) hand_back = {rank + paired, true, false, false, true};
    stages.push_back(hand_back);
  }
  return stages;
}

}  // namespace hv::runtime
