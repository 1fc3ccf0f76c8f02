// Compression on the wire in whole jobs. SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "tests/ranks/engine/job.h"

using namespace hv;
using namespace hv::runtime;

namespace {

const std::int64_t kOne = 1;

hvrun_request sum_of(const char* name, float* value, hvrun_compression compression) {
  hvrun_request request = allreduce_request(name, &kOne, value, value);
  request.compression = compression;
  return request;
}

void refuses(Rank& rank, const hvrun_request& request, StatusCode code, const std::string& words) {
  const Status status = rank.run(request);
  expect(status.code == code, "not that: " + status.message);
  expect(status.message.find(words) != std::string::npos, status.message);
}

}  // namespace

TEST_CASE("each tensor is rounded to its own wire type, whatever is ready beside it") {
  for (const JobShape& shape : {JobShape{1}, JobShape{2}, JobShape{2, 1}}) {
    CAPTURE(name_of(shape));
    JobOptions options;
    options.shape = shape;
    run_job(options, [](Rank& rank) {
      const float third = 1.0f / 3, sizes = static_cast<float>(rank.size);
      for (int round = 0; round < 4; ++round) {
        float values[6] = {third, third, third, third, third, third};
        std::uint64_t handles[6] = {};
        for (int i = 0; i < 6; ++i) {
          const std::string name = "t" + std::to_string((i + rank.rank) % 6);
          const int which = (i + rank.rank) % 6;
          const Status status = rank.enqueue(
              sum_of(name.c_str(), &values[which], static_cast<hvrun_compression>(which % 3)),
              &handles[i]);
          expect(status.ok(), status.message);
        }
        for (const std::uint64_t handle : handles) {
          const Status status = rank.wait(handle);
          expect(status.ok(), status.message);
          rank.context.release(handle);
        }
        // A third in 11 bits is 0x1.554p-2, in 8 bits 0x1.56p-2; three of them round to 1 in both.
        const float rounded[3] = {sizes * third, sizes == 3 ? 1.0f : sizes * 0x1.554p-2f,
                                  sizes == 3 ? 1.0f : sizes * 0x1.56p-2f};
        for (int i = 0; i < 6; ++i)
          expect(std::abs(values[i] - rounded[i % 3]) <= (i % 3 == 0 ? 1e-6f : 0.0f),
                 "tensor " + std::to_string(i) + " is " + std::to_string(values[i]));
      }
    });
  }
}

TEST_CASE("what compression does not fit is refused in words, and a disagreement on it told") {
  JobOptions options;
  options.shape = {2};
  run_job(options, [](Rank& rank) {
    float value = 1;
    std::int32_t whole = 1;
    hvrun_request request = allreduce_request("whole", &kOne, &whole, &whole, HVRUN_INT32);
    request.compression = HVRUN_COMPRESSION_BF16;
    refuses(rank, request, StatusCode::kUnsupported,
            "compression is for float32 and float64, not for int32");
    request = sum_of("scattered", &value, HVRUN_COMPRESSION_FP16);
    request.operation = HVRUN_REDUCESCATTER;
    request.output = nullptr;
    refuses(rank, request, StatusCode::kUnsupported, "not for reducescatter");
    request.operation = HVRUN_ALLGATHER;
    refuses(rank, request, StatusCode::kArgument, "compression is for allreduce");
    request = sum_of("unknown", &value, static_cast<hvrun_compression>(3));
    refuses(rank, request, StatusCode::kArgument, "compression 3 is no hvrun_compression");
    request = sum_of("disputed", &value,
                     rank.rank == 0 ? HVRUN_COMPRESSION_NONE : HVRUN_COMPRESSION_FP16);
    refuses(rank, request, StatusCode::kMismatch,
            "rank 0 has float32 [1] uncompressed, rank 1 has float32 [1] compressed to float16");
  });
}

TEST_CASE("a rank that has joined takes part in a compressed allreduce with zeros") {
  JobOptions options;
  options.shape = {3};
  run_job(options, [](Rank& rank) {
    float value = 6;
    if (rank.rank == 2) {
      hvrun_request request = sum_of("alone", &value, HVRUN_COMPRESSION_FP16);
      request.reduction = HVRUN_AVERAGE;
      const Status status = rank.run(request);
      expect(status.ok(), status.message);
      expect(value == 2, "6 / 3, not " + std::to_string(value));
    }
    hvrun_request join = HVRUN_REQUEST_INIT;
    join.operation = HVRUN_JOIN;
    expect(rank.run(join).ok(), "join");
  });
}
