// Adasum in whole jobs. SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "tests/ranks/engine/job.h"

using namespace hv;
using namespace hv::runtime;

namespace {

const std::int64_t kTwo = 2;

hvrun_request adasum_of(const char* name, float* pair) {
  return allreduce_request(name, &kTwo, pair, pair, HVRUN_FLOAT32, HVRUN_ADASUM);
}

bool is_near(const float* pair, double first, double second) {
  return std::abs(pair[0] - first) < 1e-5 && std::abs(pair[1] - second) < 1e-5;
}

std::string text_of(const float* pair) {
  return "not " + std::to_string(pair[0]) + ", " + std::to_string(pair[1]);
}

}  // namespace

TEST_CASE(
    "adasum tensors that are ready together, in a group or not, have dot products of their own") {
  for (const JobShape& shape : {JobShape{2}, JobShape{1, 1}}) {
    CAPTURE(name_of(shape));
    JobOptions options;
    options.shape = shape;
    run_job(options, [](Rank& rank) {
      for (int round = 0; round < 4; ++round) {
        float equal[2] = {3, 4}, orthogonal[2] = {0, 0};
        orthogonal[rank.rank] = 5;
        std::uint64_t handles[2] = {};
        hvrun_request requests[2] = {adasum_of("equal", equal),
                                     adasum_of("orthogonal", orthogonal)};
        for (int i = 0; i < 2; ++i) {
          requests[i].group = round % 2;
          requests[i].group_size = round % 2 == 0 ? 0 : 2;
          expect(rank.enqueue(requests[i], &handles[i]).ok(), "enqueue");
        }
        for (const std::uint64_t handle : handles) {
          const Status status = rank.wait(handle);
          expect(status.ok(), status.message);
          rank.context.release(handle);
        }
        expect(is_near(equal, 3, 4), text_of(equal));
        expect(is_near(orthogonal, 5, 5), text_of(orthogonal));
      }
    });
  }
}

TEST_CASE("adasum works in a process set, and without the ranks that have joined") {
  JobOptions options;
  options.shape = {2, 1};
  run_job(options, [](Rank& rank) {
    std::uint32_t set = 0;
    const Status added = rank.context.add_process_set({0, 2}, &set);
    expect(added.ok(), added.message);
    if (rank.rank != 1) {
      float pair[2] = {2, 0};
      hvrun_request request = adasum_of("of the set", pair);
      request.process_set = set;
      const Status status = rank.run(request);
      expect(status.ok(), status.message);
      expect(is_near(pair, 2, 0), text_of(pair));
    }
    if (rank.rank == 0) {
      float pair[2] = {7, 9};
      const Status status = rank.run(adasum_of("the others are zeros", pair));
      expect(status.ok(), status.message);
      expect(is_near(pair, 7, 9), text_of(pair));
    }
    hvrun_request join = HVRUN_REQUEST_INIT;
    join.operation = HVRUN_JOIN;
    expect(rank.run(join).ok(), "join");
  });
}

TEST_CASE(
    "adasum of what it does not fit is refused on every rank, in words, and the job goes on") {
  JobOptions options;
  options.shape = {2};
  run_job(options, [](Rank& rank) {
    std::int32_t whole[2] = {1, 2};
    hvrun_request request =
        allreduce_request("whole", &kTwo, whole, whole, HVRUN_INT32, HVRUN_ADASUM);
    Status status = rank.run(request);
    expect(status.code == StatusCode::kUnsupported, status.message);
    expect(status.message.find("adasum combines floating-point tensors, not int32") !=
               std::string::npos,
           status.message);
    float pair[2] = {1, 2};
    request = adasum_of("scattered", pair);
    request.operation = HVRUN_REDUCESCATTER;
    request.output = nullptr;
    status = rank.run(request);
    expect(status.code == StatusCode::kUnsupported, status.message);
    request = adasum_of("compressed", pair);
    request.compression = HVRUN_COMPRESSION_FP16;
    status = rank.run(request);
    expect(status.code == StatusCode::kUnsupported, status.message);
    request = adasum_of("disputed", pair);
    if (rank.rank == 1) request.reduction = HVRUN_SUM;
    status = rank.run(request);
    expect(status.code == StatusCode::kMismatch, status.message);
    expect(status.message.find("with reduction adasum") != std::string::npos, status.message);
    expect(rank.run(adasum_of("goes on", pair)).ok(), "the job goes on");
    expect(is_near(pair, 1, 2), text_of(pair));
  });
}
