// Every reduction of every type in whole jobs, beside the plain reference: by the backend that is
// asked for it where the tensors lie.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/ranks/engine/job.h"
#include "tests/ranks/reference.h"

using namespace hv;
using namespace hv::runtime;

namespace {

constexpr std::int64_t kCount = 1001;

// Relative to the largest number: NCCL multiplies each addend by an average's factor.
const std::map<ElementType, double> kTolerances = {
    {ElementType::kFloat16, 2e-3},    {ElementType::kBfloat16, 2e-2},
    {ElementType::kFloat32, 1e-6},    {ElementType::kFloat64, 1e-14},
    {ElementType::kFloat8E4M3, 0.07}, {ElementType::kFloat8E5M2, 0.13}};

struct ReductionCase {
  ElementType type;
  Reduction reduction;
  bool is_scaled;
};

std::vector<ReductionCase> all_cases() {
  std::vector<ReductionCase> cases;
  for (const ElementType type : all_types()) {
    for (const Reduction reduction : all_reductions()) {
      cases.push_back({type, reduction, false});
      if (type != ElementType::kBool) cases.push_back({type, reduction, true});
    }
    if (type != ElementType::kBool) cases.push_back({type, Reduction::kAverage, false});
  }
  return cases;
}

Bytes expected_of(const ReductionCase& one, int ranks) {
  CollectiveRequest request;
  request.kind = CollectiveKind::kAllreduce;
  request.type = one.type;
  const bool averages = one.reduction == Reduction::kAverage;
  request.reduction = averages ? Reduction::kSum : one.reduction;
  request.divisor = averages ? ranks : 1;
  if (one.is_scaled) request.prescale = request.postscale = 2;
  std::vector<Bytes> inputs;
  for (int rank = 0; rank < ranks; ++rank)
    inputs.push_back(random_elements(one.type, kCount, static_cast<std::uint64_t>(rank)));
  return reference_allreduce(request, inputs);
}

void check_case(Rank& rank, const ReductionCase& one) {
  const std::string name = std::string(one.is_scaled ? "scaled " : "") +
                           reduction_name(one.reduction) + " of " + element_type_name(one.type);
  const Bytes input = random_elements(one.type, kCount, static_cast<std::uint64_t>(rank.rank));
  Bytes output(input.size());
  hvrun_request request = allreduce_request(name.c_str(), &kCount, input.data(), output.data(),
                                            static_cast<hvrun_type>(one.type),
                                            static_cast<hvrun_reduction>(one.reduction));
  if (one.is_scaled) request.prescale = request.postscale = 2;
  rank.at(name);
  const Status status = rank.run(request);
  expect(status.ok(), name + ": " + status.message);
  const auto tolerance = kTolerances.find(one.type);
  const std::string wrong = first_distance(one.type, expected_of(one, rank.size), output,
                                           tolerance == kTolerances.end() ? 0 : tolerance->second);
  expect(wrong.empty(), name + ": " + wrong);
}

}  // namespace

TEST_CASE("an allreduce of every type gives the reference's result") {
  for (const JobShape& shape : {JobShape{1}, JobShape{2}, JobShape{3}, JobShape{2, 1}}) {
    CAPTURE(name_of(shape));
    run_job(in_shape(shape), [](Rank& rank) {
      for (const ReductionCase& one : all_cases()) check_case(rank, one);
    });
  }
}
