// Sparse allreduce in whole jobs. SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "tests/ranks/engine/job.h"
#include "tests/ranks/reference.h"

using namespace hv;
using namespace hv::runtime;

namespace {

constexpr std::int64_t kColumns = 3;

// A rank's rows: the same on every rank that asks for that rank's.
template <typename Index, typename Value>
struct Rows {
  std::vector<Index> indices;
  std::vector<Value> values;
  std::int64_t shape[2] = {0, kColumns};

  Rows(int rank, std::int64_t rows) {
    shape[0] = rows;
    for (std::int64_t row = 0; row < rows; ++row) {
      indices.push_back(static_cast<Index>((row * 7 + rank) % 5));  // duplicates, too
      for (std::int64_t column = 0; column < kColumns; ++column)
        values.push_back(static_cast<Value>(8 * (rank * 100 + row % 50 + column)));
    }
  }
};

template <typename Index, typename Value>
hvrun_request sparse_request(const char* name, const Rows<Index, Value>& rows,
                             hvrun_type value_type) {
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = HVRUN_SPARSE_ALLREDUCE;
  request.name = name;
  request.type = value_type;
  request.ndim = 2;
  request.shape = rows.shape;
  request.input = rows.values.data();
  request.index_type = sizeof(Index) == 4 ? HVRUN_INT32 : HVRUN_INT64;
  request.indices = rows.indices.data();
  return request;
}

template <typename Index, typename Value>
void check_sparse(const Operation& result, const std::vector<std::int64_t>& counts, double factor) {
  const std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  expect(result.result_shape == std::vector<std::int64_t>{total, kColumns}, "shape");
  expect(result.result_bytes == static_cast<std::size_t>(total * kColumns) * sizeof(Value),
         "bytes");
  const auto* indices = reinterpret_cast<const Index*>(result.owned_indices.get());
  const auto* values = reinterpret_cast<const Value*>(result.output);
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    Rows<Index, Value> rows(static_cast<int>(rank), counts[rank]);
    for (const Index index : rows.indices)
      expect(*indices++ == index, "index of rank " + std::to_string(rank));
    for (const Value value : rows.values) {
      const auto due = static_cast<Value>(static_cast<double>(value) * factor);
      expect(*values == due, "value of rank " + std::to_string(rank) + " is " +
                                 std::to_string(*values) + ", not " + std::to_string(due));
      ++values;
    }
  }
}

template <typename Index, typename Value>
void sum_and_average(Rank& rank, hvrun_type type, const std::vector<std::int64_t>& counts) {
  const Rows<Index, Value> mine(rank.rank, counts[static_cast<std::size_t>(rank.rank)]);
  OperationPtr result;
  rank.at("sum");
  Status status = rank.run(sparse_request("sum", mine, type), &result);
  expect(status.ok(), status.message);
  check_sparse<Index, Value>(*result, counts, 1);
  hvrun_request scaled = sparse_request("scaled", mine, type);
  scaled.prescale = 0.5;
  scaled.postscale = 4;
  rank.at("scaled");
  status = rank.run(scaled, &result);
  expect(status.ok(), status.message);
  check_sparse<Index, Value>(*result, counts, 2);
  if (type != HVRUN_FLOAT64) return;
  hvrun_request average = sparse_request("average", mine, type);
  average.reduction = HVRUN_AVERAGE;
  status = rank.run(average, &result);
  expect(status.ok(), status.message);
  check_sparse<Index, Value>(*result, counts, 1.0 / rank.size);
}

// A rank's values, as many rows of two as it has in that test.
Bytes sparse_values(ElementType type, int rank) {
  return random_elements(type, 2 * static_cast<std::size_t>(1 + rank % 3),
                         100u + static_cast<unsigned>(rank));
}

// Each row is scaled by itself: as an allreduce of one rank would be.
Bytes scaled_rows(ElementType type, const hvrun_request& request, int size) {
  CollectiveRequest alone;
  alone.type = type;
  alone.prescale = request.prescale;
  alone.postscale = request.postscale;
  alone.divisor = request.reduction == HVRUN_AVERAGE ? size : 1;
  Bytes all;
  for (int rank = 0; rank < size; ++rank) {
    const Bytes rows = reference_allreduce(alone, {sparse_values(type, rank)});
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

void check_scaled(Rank& rank, ElementType type, hvrun_reduction reduction, double prescale,
                  double postscale) {
  const Bytes mine = sparse_values(type, rank.rank);
  const std::vector<std::int32_t> indices(mine.size() / element_size(type) / 2, rank.rank);
  const std::int64_t shape[2] = {static_cast<std::int64_t>(indices.size()), 2};
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = HVRUN_SPARSE_ALLREDUCE;
  request.name = "scaled";
  request.type = static_cast<hvrun_type>(type);
  request.reduction = reduction;
  request.ndim = 2;
  request.shape = shape;
  request.input = mine.data();
  request.index_type = HVRUN_INT32;
  request.indices = indices.data();
  request.prescale = prescale;
  request.postscale = postscale;
  const std::string what = std::string(element_type_name(type)) + " by " +
                           std::to_string(prescale) + " and " + std::to_string(postscale);
  rank.at(what);
  OperationPtr result;
  const Status status = rank.run(request, &result);
  expect(status.ok(), what + ": " + status.message);
  const Bytes actual(result->output, result->output + result->result_bytes);
  const std::string wrong =
      first_difference(type, scaled_rows(type, request, rank.size), actual, 0);
  expect(wrong.empty(), what + ": " + wrong);
}

void refuses_sparse(Rank& rank, const hvrun_request& request, StatusCode code,
                    const std::string& words) {
  const Status status = rank.run(request);
  expect(status.code == code, "not that: " + status.message);
  expect(status.message.find(words) != std::string::npos, status.message);
}

}  // namespace

TEST_CASE("a sparse allreduce gives every rank all rows with their indices, by rank") {
  for (const JobShape& shape :
       {JobShape{1}, JobShape{2}, JobShape{3}, JobShape{2, 2}, JobShape{1, 3, 2}, JobShape{1, 1}}) {
    CAPTURE(name_of(shape));
    run_job(in_shape(shape), [](Rank& rank) {
      for (const std::int64_t step : {0, 1, 3, 2000, 0, 1}) {
        std::vector<std::int64_t> counts;
        for (int r = 0; r < rank.size; ++r) counts.push_back(step * ((r + 1) % 3));
        sum_and_average<std::int32_t, std::int64_t>(rank, HVRUN_INT64, counts);
        sum_and_average<std::int64_t, float>(rank, HVRUN_FLOAT32, counts);
        // A power of two divides without rounding.
        if (rank.size % 3 != 0) sum_and_average<std::int64_t, double>(rank, HVRUN_FLOAT64, counts);
      }
    });
  }
}

TEST_CASE("sparse tensors travel in a group, in a set, and beside ranks that have joined") {
  run_job(in_shape({2, 1}), [](Rank& rank) {
    using FloatRows = Rows<std::int32_t, double>;
    std::uint32_t set = 0;
    expect(rank.context.add_process_set({0, 2}, &set).ok(), "add");
    if (rank.rank != 1) {
      const FloatRows mine(rank.rank / 2, 4);
      hvrun_request request = sparse_request("of the set", mine, HVRUN_FLOAT64);
      request.process_set = set;
      OperationPtr result;
      const Status status = rank.run(request, &result);
      expect(status.ok(), status.message);
      check_sparse<std::int32_t, double>(*result, {4, 4}, 1);
    }
    const FloatRows mine(rank.rank, rank.rank + 1);
    std::uint64_t handles[2] = {};
    const char* const names[2] = {"a", "b"};
    for (int i = 0; i < 2; ++i) {
      hvrun_request request = sparse_request(names[i], mine, HVRUN_FLOAT64);
      request.group = 5;
      request.group_size = 2;
      const Status status = rank.enqueue(request, &handles[i]);
      expect(status.ok(), status.message);
    }
    for (const std::uint64_t handle : handles) {
      const Status status = rank.wait(handle);
      expect(status.ok(), status.message);
      check_sparse<std::int32_t, double>(*rank.context.find(handle), {1, 2, 3}, 1);
      rank.context.release(handle);
    }
    // "a" is known by number when rank 0 alone has it, "new" is not; both are so twice.
    for (int round = 0; rank.rank == 0 && round < 2; ++round) {
      for (const char* name : {"a", "new"}) {
        hvrun_request request = sparse_request(name, mine, HVRUN_FLOAT64);
        request.reduction = HVRUN_AVERAGE;
        request.flags = round == 0 ? 0 : HVRUN_AVERAGE_PRESENT;
        request.prescale = 3;
        OperationPtr result;
        const Status status = rank.run(request, &result);
        expect(status.ok(), status.message);
        check_sparse<std::int32_t, double>(*result, {1, 0, 0}, round == 0 ? 1 : 3);
      }
    }
    hvrun_request join = HVRUN_REQUEST_INIT;
    join.operation = HVRUN_JOIN;
    expect(rank.run(join).ok(), "join");
  });
}

TEST_CASE("a sparse allreduce scales and averages rows of every type, each by itself") {
  for (const JobShape& shape : {JobShape{1}, JobShape{3}, JobShape{2, 1}}) {
    CAPTURE(name_of(shape));
    run_job(in_shape(shape), [](Rank& rank) {
      for (const ElementType type : all_types()) {
        if (type == ElementType::kBool) continue;  // refused: below
        check_scaled(rank, type, HVRUN_SUM, 0.5, 4);
        check_scaled(rank, type, HVRUN_SUM, 3, 0.25);
        if (is_floating(type)) check_scaled(rank, type, HVRUN_AVERAGE, 1.0 / 3, 0.7);
      }
    });
  }
}

TEST_CASE("a scalar of a sparse allreduce is one row with one index") {
  for (const JobShape& shape : {JobShape{1}, JobShape{3}, JobShape{2, 1}}) {
    CAPTURE(name_of(shape));
    run_job(in_shape(shape), [](Rank& rank) {
      const double value = 2 + rank.rank;
      const std::int64_t index = 7 * rank.rank;
      hvrun_request request = HVRUN_REQUEST_INIT;
      request.operation = HVRUN_SPARSE_ALLREDUCE;
      request.name = "scalar";
      request.type = HVRUN_FLOAT64;
      request.input = &value;
      request.index_type = HVRUN_INT64;
      request.indices = &index;
      OperationPtr result;
      const Status status = rank.run(request, &result);
      expect(status.ok(), status.message);
      expect(result->result_shape == std::vector<std::int64_t>{rank.size}, "a row of each rank");
      for (int from = 0; from < rank.size; ++from) {
        expect(reinterpret_cast<const double*>(result->output)[from] == 2 + from, "value");
        expect(reinterpret_cast<const std::int64_t*>(result->owned_indices.get())[from] == 7 * from,
               "index");
      }
    });
  }
}

TEST_CASE("a sparse allreduce says what it cannot do and who disagrees") {
  run_job(in_shape({2}), [](Rank& rank) {
    const Rows<std::int32_t, float> mine(rank.rank, 2);
    const Rows<std::int64_t, float> wide(rank.rank, 2);
    const Rows<std::int32_t, std::int64_t> whole(rank.rank, 2);
    hvrun_request request = sparse_request("no indices", mine, HVRUN_FLOAT32);
    request.indices = nullptr;
    refuses_sparse(rank, request, StatusCode::kArgument, "indices is NULL");
    request = sparse_request("odd indices", mine, HVRUN_FLOAT32);
    request.index_type = HVRUN_INT16;
    refuses_sparse(rank, request, StatusCode::kArgument, "neither HVRUN_INT32 nor HVRUN_INT64");
    request = sparse_request("output", mine, HVRUN_FLOAT32);
    float output[6];
    request.output = output;
    refuses_sparse(rank, request, StatusCode::kArgument, "the library owns the result");
    request = sparse_request("dense", mine, HVRUN_FLOAT32);
    request.operation = HVRUN_ALLGATHER;
    refuses_sparse(rank, request, StatusCode::kArgument, "only a sparse allreduce has indices");
    request = sparse_request("least", mine, HVRUN_FLOAT32);
    request.reduction = HVRUN_MIN;
    refuses_sparse(rank, request, StatusCode::kUnsupported, "takes sum and average, not min");
    request = sparse_request("whole", whole, HVRUN_INT64);
    request.reduction = HVRUN_AVERAGE;
    refuses_sparse(rank, request, StatusCode::kUnsupported,
                   "averages floating-point values, not int64");
    request = sparse_request("flags", mine, HVRUN_BOOL);
    request.prescale = 2;
    refuses_sparse(rank, request, StatusCode::kUnsupported,
                   "bool takes neither average nor scales");
    request = sparse_request("compressed", mine, HVRUN_FLOAT32);
    request.compression = HVRUN_COMPRESSION_FP16;
    refuses_sparse(rank, request, StatusCode::kUnsupported, "is not compressed");
    request = rank.rank == 0 ? sparse_request("disputed", mine, HVRUN_FLOAT32)
                             : sparse_request("disputed", wide, HVRUN_FLOAT32);
    refuses_sparse(
        rank, request, StatusCode::kMismatch,
        "rank 0 has float32 [*,3] with int32 indices, rank 1 has float32 [*,3] with int64 "
        "indices");
  });
}

TEST_CASE("a sparse allreduce's bytes are those of its values and of its indices") {
  run_job(in_shape({2}), [](Rank& rank) {
    const Counters& counters = rank.context.observation().counters;
    const Rows<std::int32_t, double> mine(rank.rank, rank.rank == 0 ? 2 : 5);
    const Status status = rank.run(sparse_request("sum", mine, HVRUN_FLOAT64));
    expect(status.ok(), status.message);
    const std::uint64_t rows = rank.rank == 0 ? 2 : 5, row = kColumns * 8 + 4;
    expect(counters.input_bytes.value() == rows * row, "input bytes");
    expect(counters.result_bytes.value() == 7 * row, "result bytes");
  });
}
