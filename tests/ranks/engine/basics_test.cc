// What every operation yields, ranks being threads.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstring>
#include <numeric>

#include "tests/ranks/engine/job.h"

using namespace hv;
using namespace hv::runtime;

namespace {

const std::vector<JobShape> kShapes{{1}, {2}, {3}, {5}, {2, 2}, {1, 3, 2}};

}  // namespace

TEST_CASE("an allreduce sums over all ranks, in place and not") {
  for (const JobShape& shape : kShapes) {
    CAPTURE(name_of(shape));
    run_job(in_shape(shape), [](Rank& rank) {
      const std::int64_t count = 1000;
      std::vector<float> input(1000, static_cast<float>(rank.rank + 1)), output(1000);
      const float expected = static_cast<float>(rank.size * (rank.size + 1) / 2);
      const Status apart = rank.run(allreduce_request("w", &count, input.data(), output.data()));
      expect(apart.ok(), apart.message);
      expect(output == std::vector<float>(1000, expected), "wrong sum");
      expect(input[0] == static_cast<float>(rank.rank + 1), "the input has changed");
      const Status in_place = rank.run(allreduce_request("w2", &count, input.data(), input.data()));
      expect(in_place.ok() && input == output, "wrong sum in place");
    });
  }
}

TEST_CASE("average, minimum, maximum and product do what they say, integers truncate") {
  run_job(in_shape({3}), [](Rank& rank) {
    const std::int64_t one = 1;
    const auto reduce = [&](hvrun_reduction reduction, std::int32_t value) {
      std::int32_t result = 0;
      const Status status =
          rank.run(allreduce_request("x", &one, &value, &result, HVRUN_INT32, reduction));
      expect(status.ok(), status.message);
      return result;
    };
    expect(reduce(HVRUN_AVERAGE, rank.rank == 0 ? -5 : 0) == -1,
           "average of -5, 0, 0 truncates to -1");
    expect(reduce(HVRUN_MIN, rank.rank - 1) == -1, "minimum");
    expect(reduce(HVRUN_MAX, rank.rank) == 2, "maximum");
    expect(reduce(HVRUN_PRODUCT, rank.rank + 1) == 6, "product");
  });
}

TEST_CASE("a float16's factor may be one that no float16 is") {
  struct Case {
    std::uint16_t value;
    double factor;
    std::uint16_t sum;  // of two ranks
  };
  for (const Case& one : {Case{0x1400, 0x1p17, 0x5c00}, Case{0, 0x1p17, 0},
                          Case{0x6400, 0x1p-20, 0x1800}, Case{0x6401, 0x1p-15, 0x2c01}}) {
    CAPTURE(one.factor);
    run_job(in_shape({2}), [&one](Rank& rank) {
      const std::int64_t count = 1;
      std::uint16_t sum = 1;
      hvrun_request request = allreduce_request("scaled", &count, &one.value, &sum, HVRUN_FLOAT16);
      request.prescale = one.factor;
      const Status status = rank.run(request);
      expect(status.ok(), status.message);
      expect(sum == one.sum, std::to_string(sum));
    });
  }
}

TEST_CASE("prescale and postscale multiply before and after the reduction") {
  run_job(in_shape({2}), [](Rank& rank) {
    const std::int64_t one = 1;
    float value = 3, result = 0;
    hvrun_request request =
        allreduce_request("x", &one, &value, &result, HVRUN_FLOAT32, HVRUN_PRODUCT);
    request.prescale = 2;
    request.postscale = 0.5;
    const Status status = rank.run(request);
    expect(status.ok(), status.message);
    expect(result == 18, "2*3 * 2*3 / 2 is 18, not " + std::to_string(result));
  });
}

TEST_CASE("an allgather joins different first extents in rank order, in memory of the library") {
  for (const JobShape& shape : kShapes) {
    CAPTURE(name_of(shape));
    run_job(in_shape(shape), [](Rank& rank) {
      for (int round = 0; round < 3;
           ++round) {  // fresh, cached, and with other extents under the same name
        const std::int64_t rows = round < 2 ? rank.rank : rank.rank + 1;
        const std::int64_t extents[] = {rows, 2};
        std::vector<std::int64_t> input(static_cast<std::size_t>(rows * 2), rank.rank);
        hvrun_request request = HVRUN_REQUEST_INIT;
        request.operation = HVRUN_ALLGATHER;
        request.name = "g";
        request.type = HVRUN_INT64;
        request.ndim = 2;
        request.shape = extents;
        request.input = input.data();
        OperationPtr operation;
        const Status status = rank.run(request, &operation);
        expect(status.ok(), status.message);
        std::vector<std::int64_t> expected;
        for (int from = 0; from < rank.size; ++from) {
          expected.insert(expected.end(),
                          static_cast<std::size_t>(2 * (round < 2 ? from : from + 1)), from);
        }
        expect(operation->result_shape ==
                   std::vector<std::int64_t>{static_cast<std::int64_t>(expected.size()) / 2, 2},
               "shape " + shape_text(operation->result_shape));
        expect(operation->result_bytes == expected.size() * 8, "bytes");
        std::vector<std::int64_t> gathered(expected.size());
        if (!expected.empty())
          std::memcpy(gathered.data(), operation->output, operation->result_bytes);
        expect(gathered == expected, "round " + std::to_string(round) + ": " +
                                         shape_text(gathered) + " instead of " +
                                         shape_text(expected));
      }
    });
  }
}

TEST_CASE("an allgather of scalars yields one element per rank") {
  run_job(in_shape({3}), [](Rank& rank) {
    const std::int32_t value = 10 * rank.rank;
    std::int32_t gathered[3] = {};
    hvrun_request request = HVRUN_REQUEST_INIT;
    request.operation = HVRUN_ALLGATHER;
    request.name = "s";
    request.type = HVRUN_INT32;
    request.input = &value;
    request.output = gathered;
    const Status status = rank.run(request);
    expect(status.ok(), status.message);
    expect(gathered[0] == 0 && gathered[1] == 10 && gathered[2] == 20, "content");
  });
}

TEST_CASE("a broadcast gives every rank the root's bytes, whatever the root") {
  run_job(in_shape({2, 2}), [](Rank& rank) {
    for (int root = 0; root < rank.size; ++root) {
      const std::int64_t count = 5000;
      std::vector<double> buffer(5000, rank.rank);
      hvrun_request request = allreduce_request(
          "b", &count, rank.rank == root ? buffer.data() : nullptr, buffer.data(), HVRUN_FLOAT64);
      request.operation = HVRUN_BROADCAST;
      request.root = root;
      const Status status = rank.run(request);
      expect(status.ok(), status.message);
      expect(buffer == std::vector<double>(5000, root), "content");
    }
  });
}

TEST_CASE("empty and scalar tensors are ordinary tensors") {
  run_job(in_shape({3}), [](Rank& rank) {
    const std::int64_t none = 0;
    expect(rank.run(allreduce_request("empty", &none, nullptr, nullptr)).ok(), "an empty tensor");
    float value = 2, result = 0;
    hvrun_request scalar = allreduce_request("scalar", nullptr, &value, &result);
    scalar.ndim = 0;
    expect(rank.run(scalar).ok() && result == 6, "a scalar");
  });
}

TEST_CASE("a scalar of an alltoall is one row, which goes whole to one rank") {
  for (const JobShape& shape : {JobShape{1}, JobShape{3}, JobShape{2, 1}}) {
    CAPTURE(name_of(shape));
    run_job(in_shape(shape), [](Rank& rank) {
      const std::int32_t value = rank.rank;
      hvrun_request request = HVRUN_REQUEST_INIT;
      request.operation = HVRUN_ALLTOALL;
      request.name = "scalar";
      request.type = HVRUN_INT32;
      request.input = &value;
      for (int root = 0; root < rank.size; ++root) {
        std::vector<std::int64_t> splits(static_cast<std::size_t>(rank.size), 0);
        splits[static_cast<std::size_t>(root)] = 1;
        request.splits = splits.data();
        request.split_count = splits.size();
        OperationPtr result;
        const Status status = rank.run(request, &result);
        expect(status.ok(), status.message);
        const bool is_root = rank.rank == root;
        expect(result->result_shape == std::vector<std::int64_t>{is_root ? rank.size : 0}, "rows");
        expect(result->received == std::vector<std::int64_t>(splits.size(), is_root ? 1 : 0),
               "a row from each, or none");
        for (int from = 0; is_root && from < rank.size; ++from)
          expect(reinterpret_cast<const std::int32_t*>(result->output)[from] == from, "content");
      }
      if (rank.size == 1) return;
      request.splits = nullptr;
      request.split_count = 0;
      const Status uncut = rank.run(request);
      expect(uncut.code == StatusCode::kArgument, uncut.message);
      expect(uncut.message.find("cannot be cut equally") != std::string::npos, uncut.message);
    });
  }
}

TEST_CASE("empty tensors travel with full ones") {
  run_job(in_shape({2}), [](Rank& rank) {
    const std::int64_t none = 0, some = 7;
    std::vector<float> data(7, 1);
    std::uint64_t handles[3];
    expect(rank.enqueue(allreduce_request("a", &none, nullptr, nullptr), &handles[0]).ok(),
           "enqueue a");
    expect(rank.enqueue(allreduce_request("b", &some, data.data(), data.data()), &handles[1]).ok(),
           "enqueue b");
    expect(rank.enqueue(allreduce_request("c", &none, nullptr, nullptr), &handles[2]).ok(),
           "enqueue c");
    for (const std::uint64_t handle : handles) expect(rank.wait(handle).ok(), "wait");
    expect(data[6] == 2, "sum");
  });
}

TEST_CASE("no rank leaves a barrier before the last has come") {
  std::atomic<int> came{0};
  run_job(in_shape({2, 2}), [&](Rank& rank) {
    for (int round = 1; round <= 50; ++round) {
      ++came;
      expect(rank.run(barrier_request()).ok(), "barrier");
      expect(came >= round * rank.size, "left early");
      expect(rank.run(barrier_request()).ok(), "second barrier");
    }
  });
}

TEST_CASE("a result without the caller's memory belongs to the operation") {
  run_job(in_shape({2}), [](Rank& rank) {
    const std::int64_t count = 3;
    const float input[3] = {1, 2, 3};
    OperationPtr operation;
    expect(rank.run(allreduce_request("x", &count, input, nullptr), &operation).ok(), "allreduce");
    expect(operation->owned != nullptr && reinterpret_cast<float*>(operation->output)[2] == 6,
           "content");
  });
}

TEST_CASE("an unsupported combination is an error on every rank, and the job goes on") {
  run_job(in_shape({2}), [](Rank& rank) {
    const std::int64_t one = 1;
    bool flag = rank.rank == 1;
    const Status status =
        rank.run(allreduce_request("b", &one, &flag, &flag, HVRUN_BOOL, HVRUN_AVERAGE));
    expect(status.code == StatusCode::kUnsupported, status.message);
    expect(rank.run(allreduce_request("b", &one, &flag, &flag, HVRUN_BOOL, HVRUN_MAX)).ok() && flag,
           "any");
  });
}
