// The stand-in for NCCL computes what NCCL does, between ranks that are threads.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "runtime/device/float8.h"
#include "runtime/device/half.h"
#include "tests/unit/fake_nccl/rank.h"

using namespace hv;
using namespace hv::nccl;

namespace {

constexpr int kTypes = kFloat8E5m2 + 1;

template <class Value>
void append(std::vector<std::byte>* bytes, Value value) {
  const auto* const begin = reinterpret_cast<const std::byte*>(&value);
  bytes->insert(bytes->end(), begin, begin + sizeof value);
}

void append(std::vector<std::byte>* bytes, int type, double value) {
  switch (type) {
    case kInt8:
    case kUint8:
      return append(bytes, static_cast<std::uint8_t>(value));
    case kInt32:
    case kUint32:
      return append(bytes, static_cast<std::uint32_t>(value));
    case kInt64:
    case kUint64:
      return append(bytes, static_cast<std::uint64_t>(value));
    case kFloat16:
      return append(bytes, runtime::half_from_float(static_cast<float>(value)));
    case kFloat32:
      return append(bytes, static_cast<float>(value));
    case kFloat64:
      return append(bytes, value);
    case kFloat8E4m3:
      return append(bytes, runtime::e4m3_from_float(static_cast<float>(value)));
    case kFloat8E5m2:
      return append(bytes, runtime::e5m2_from_float(static_cast<float>(value)));
    default:
      return append(bytes, runtime::bfloat_from_float(static_cast<float>(value)));
  }
}

// Small whole numbers, so that every type holds what comes of them.
double input(int rank, std::size_t element) {
  return 1 + static_cast<double>((element + static_cast<std::size_t>(rank)) % 3);
}

double expected_of_two(int reduction, int type, std::size_t element) {
  const double one = input(0, element), other = input(1, element);
  switch (reduction) {
    case kSum:
      return one + other;
    case kProduct:
      return one * other;
    case kMax:
      return std::max(one, other);
    case kMin:
      return std::min(one, other);
    default: {
      const double average = (one + other) / 2;
      return type >= kFloat16 ? average : static_cast<int>(average);
    }
  }
}

template <class OfElement>
std::vector<std::byte> tensor(int type, std::size_t count, OfElement of_element) {
  std::vector<std::byte> bytes;
  for (std::size_t element = 0; element < count; ++element)
    append(&bytes, type, of_element(element));
  return bytes;
}

std::vector<int> counted(std::size_t count, int first) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

}  // namespace

TEST_CASE("an allreduce has NCCL's reductions of all its types") {
  constexpr std::size_t kCount = 7;
  run_ranks(2, [](Rank& rank) {
    for (int type = 0; type < kTypes; ++type)
      for (const int reduction : {kSum, kProduct, kMax, kMin, kAverage}) {
        const auto in =
            tensor(type, kCount, [&](std::size_t one) { return input(rank.rank, one); });
        std::byte* const at = rank.put(in);
        CHECK(rank.has_launched(
            nccl_call().allreduce(at, at, kCount, type, reduction, rank.comm, rank.stream)));
        const auto right = tensor(
            type, kCount, [&](std::size_t one) { return expected_of_two(reduction, type, one); });
        CHECK(rank.get(at, in.size()) == right);
      }
  });
}

TEST_CASE("a premultiplied sum has its scalar, and only for its type") {
  run_ranks(3, [](Rank& rank) {
    int reduction = 0;
    float scalar = 0.5;
    CHECK(nccl_call().make_premultiplied_sum(&reduction, &scalar, kFloat32, kScalarImmediate,
                                             rank.comm) == kSuccess);
    CHECK(reduction > kAverage);
    float* const at = rank.put(std::vector<float>{static_cast<float>(rank.rank), 2});
    CHECK(rank.has_launched(
        nccl_call().allreduce(at, at, 2, kFloat32, reduction, rank.comm, rank.stream)));
    CHECK(rank.get(at, 2) == std::vector<float>{1.5, 3});
    CHECK(nccl_call().destroy_reduction(reduction, rank.comm) == kSuccess);
    CHECK(nccl_call().destroy_reduction(reduction, rank.comm) == kInvalidArgument);
  });
}

TEST_CASE("a long allreduce between three ranks, not in place") {
  constexpr std::size_t kCount = 1000003;
  run_ranks(3, [](Rank& rank) {
    const int* const from = rank.put(counted(kCount, rank.rank));
    int* const to = static_cast<int*>(rank.room(kCount * sizeof(int)));
    CHECK(rank.has_launched(
        nccl_call().allreduce(from, to, kCount, kInt32, kSum, rank.comm, rank.stream)));
    const std::vector<int> out = rank.get(to, kCount);
    CHECK(out.front() == 3);
    CHECK(out.back() == 3 * static_cast<int>(kCount));
  });
}

TEST_CASE("an allgather and a reducescatter, in place and not") {
  run_ranks(3, [](Rank& rank) {
    const auto own = static_cast<std::size_t>(rank.rank);
    for (const bool is_in_place : {false, true}) {
      const int mine[] = {10 * rank.rank, 10 * rank.rank + 1};
      int* const all = static_cast<int*>(rank.room(6 * sizeof(int)));
      int* const part = is_in_place ? all + 2 * own : static_cast<int*>(rank.room(2 * sizeof(int)));
      cuda_call().copy_to_device(reinterpret_cast<cuda::Address>(part), mine, sizeof mine,
                                 rank.stream);
      CHECK(rank.has_launched(nccl_call().allgather(part, all, 2, kInt32, rank.comm, rank.stream)));
      CHECK(rank.get(all, 6) == std::vector<int>{0, 1, 10, 11, 20, 21});
      CHECK(rank.has_launched(
          nccl_call().reducescatter(all, part, 2, kInt32, kSum, rank.comm, rank.stream)));
      CHECK(rank.get(part, 2) == std::vector<int>{3 * mine[0], 3 * mine[1]});
    }
  });
}

TEST_CASE("all ranks send to all, themselves too, more than sockets hold") {
  constexpr std::size_t kCount = 300000;
  run_ranks(3, [](Rank& rank) {
    std::vector<int*> from, to;
    for (int peer = 0; peer < rank.ranks; ++peer) {
      from.push_back(rank.put(counted(kCount, 100 * rank.rank + peer)));
      to.push_back(static_cast<int*>(rank.room(kCount * sizeof(int))));
    }
    CHECK(nccl_call().group_start() == kSuccess);
    for (int peer = 0; peer < rank.ranks; ++peer) {
      const auto number = static_cast<std::size_t>(peer);
      CHECK(nccl_call().send(from[number], kCount, kInt32, peer, rank.comm, rank.stream) == 0);
      CHECK(nccl_call().receive(to[number], kCount, kInt32, peer, rank.comm, rank.stream) == 0);
    }
    CHECK(rank.has_launched(nccl_call().group_end()));
    for (int peer = 0; peer < rank.ranks; ++peer)
      CHECK(rank.get(to[static_cast<std::size_t>(peer)], kCount) ==
            counted(kCount, 100 * peer + rank.rank));
  });
}

TEST_CASE("broadcasts of a group gather parts of different sizes") {
  run_ranks(3, [](Rank& rank) {
    const std::size_t own = static_cast<std::size_t>(rank.rank);
    const std::size_t counts[] = {2, 0, 3}, begins[] = {0, 2, 2};
    const int* const from = rank.put(counted(counts[own] + 1, 10 * rank.rank));
    int* const to = static_cast<int*>(rank.room(5 * sizeof(int)));
    CHECK(nccl_call().group_start() == kSuccess);
    CHECK(nccl_call().group_start() == kSuccess);  // groups in groups are one
    for (int root = 0; root < rank.ranks; ++root) {
      const auto of = static_cast<std::size_t>(root);
      CHECK(nccl_call().broadcast(from, to + begins[of], counts[of], kInt32, root, rank.comm,
                                  rank.stream) == kSuccess);
    }
    CHECK(nccl_call().group_end() == kSuccess);
    CHECK(rank.has_launched(nccl_call().group_end()));
    CHECK(rank.get(to, 5) == std::vector<int>{0, 1, 20, 21, 22});
  });
}

TEST_CASE("8-bit floats are reduced by an NCCL and on cards that can, and moved by all") {
  for (const auto& [variable, value] :
       {std::pair{"HVRUN_FAKE_NCCL_VERSION", "22304"}, {"HVRUN_FAKE_CUDA_CAPABILITY", "89"}}) {
    ::setenv(variable, value, 1);
    run_ranks(2, [](Rank& rank) {
      int* const at = rank.put(std::vector<int>{rank.rank, rank.rank});
      CHECK(rank.has_launched(
          nccl_call().broadcast(at, at, 8, kFloat8E4m3, 1, rank.comm, rank.stream)));
      CHECK(rank.get(at, 2) == std::vector<int>{1, 1});
      CHECK(nccl_call().allreduce(at, at, 8, kFloat8E4m3, kSum, rank.comm, rank.stream) ==
            kInvalidArgument);
      CHECK(nccl_call().abort(rank.comm) == kSuccess);
      rank.comm = nullptr;
    });
    ::unsetenv(variable);
  }
}
