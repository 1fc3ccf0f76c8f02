// Where the pieces of a bucket lie, and when nothing has to be moved.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/packing.h"

#include <doctest/doctest.h>

#include <vector>

using namespace hv;
using namespace hv::runtime;

namespace {

// An allreduce of float32 tensors at these places of one memory, in elements; -1: not here.
struct Tensor {
  int input, output;
  std::int64_t count;
};

struct Bucket {
  explicit Bucket(const std::vector<Tensor>& tensors) : memory(1000) {
    request.kind = CollectiveKind::kAllreduce;
    request.type = ElementType::kFloat32;
    for (const Tensor& one : tensors) {
      Segment segment;
      segment.input = at(one.input);
      segment.output = one.output < 0 ? nullptr : at(one.output);
      segment.count = one.count;
      segment.device = one.input < 0 ? kHostDevice : 0;
      request.segments.push_back(segment);
    }
  }
  std::byte* at(int element) { return memory.data() + 4 * (element < 0 ? 0 : element); }

  std::vector<std::byte> memory;
  CollectiveRequest request;
};

}  // namespace

TEST_CASE("tensors that lie one behind the other are reduced where they lie") {
  Bucket bucket({{0, 0, 4}, {4, 4, 8}, {12, 12, 1}});
  const nccl::Packing plan = nccl::plan_packing(bucket.request, false, false);
  CHECK(plan.count == 13);
  CHECK(plan.bytes == 52);
  CHECK(plan.input == bucket.at(0));
  CHECK(plan.output == bucket.at(0));
  CHECK(plan.moves_in.empty());
  CHECK(plan.moves_out.empty());
}

TEST_CASE("what does not lie like the bucket is moved, each way for itself") {
  Bucket gap({{0, 100, 4}, {5, 104, 5}});
  const nccl::Packing plan = nccl::plan_packing(gap.request, false, false);
  CHECK(plan.input == nullptr);
  CHECK(plan.output == gap.at(100));
  REQUIRE(plan.moves_in.size() == 2);
  CHECK(plan.moves_out.empty());
  CHECK(plan.moves_in[1].offset == 16);
  CHECK(plan.moves_in[1].count == 5);
  CHECK(plan.moves_in[1].from == gap.at(5));

  Bucket order({{0, 112, 4}, {4, 100, 5}});
  const nccl::Packing turned = nccl::plan_packing(order.request, false, false);
  CHECK(turned.input == order.at(0));
  CHECK(turned.output == nullptr);
  REQUIRE(turned.moves_out.size() == 2);
  CHECK(turned.moves_out[0].to == order.at(112));
  CHECK(turned.moves_out[1].to == order.at(100));
  CHECK(turned.moves_out[1].offset == 16);
}

// Who knows whose memory lies in a gap?
TEST_CASE("a gap of the bucket is never taken for what lies between tensors") {
  for (const int second : {3, 4}) {
    CAPTURE(second);
    Bucket bucket({{0, 0, 3}, {second, second, 5}});
    const nccl::Packing plan = nccl::plan_packing(bucket.request, false, false);
    CHECK(plan.bytes == 36);
    CHECK(plan.count == 9);
    CHECK(plan.input == nullptr);
    CHECK(plan.output == nullptr);
    REQUIRE(plan.moves_in.size() == 2);
    CHECK(plan.moves_in[1].offset == 16);
  }
}

TEST_CASE("what goes as another type is moved, and its places are as wide as that") {
  Bucket bucket({{0, 0, 4}, {4, 4, 16}});
  bucket.request.compression = Compression::kBfloat16;
  const nccl::Packing plan = nccl::plan_packing(bucket.request, false, false);
  CHECK(plan.bytes == 16 + 32);
  CHECK(plan.count == 8 + 16);
  CHECK(plan.input == nullptr);
  REQUIRE(plan.moves_in.size() == 2);
  REQUIRE(plan.moves_out.size() == 2);
  CHECK(plan.moves_in[1].offset == 16);
  CHECK(plan.moves_out[1].to == bucket.at(4));
}

TEST_CASE("empty tensors have no place, and what a joined rank lacks is zeros for nobody") {
  Bucket bucket({{50, 50, 0}, {0, 0, 4}, {500, 500, 0}, {4, 4, 2}});
  CHECK(nccl::plan_packing(bucket.request, false, false).input == bucket.at(0));

  Bucket absent({{-1, -1, 2}, {-1, -1, 3}});
  const nccl::Packing plan = nccl::plan_packing(absent.request, false, false);
  CHECK(plan.bytes == 16 + 12);
  CHECK(plan.input == nullptr);
  CHECK(plan.output == nullptr);
  REQUIRE(plan.moves_in.size() == 2);
  CHECK(plan.moves_in[0].from == nullptr);
  CHECK(plan.moves_out.empty());

  CHECK(nccl::plan_packing(Bucket({{0, 0, 0}}).request, false, false).count == 0);
}

TEST_CASE("what the kernels scale is moved that way, however it lies") {
  Bucket bucket({{0, 0, 4}, {4, 4, 8}});
  const nccl::Packing before = nccl::plan_packing(bucket.request, true, false);
  CHECK(before.input == nullptr);
  CHECK(before.output == bucket.at(0));
  CHECK(before.moves_in.size() == 2);
  const nccl::Packing after = nccl::plan_packing(bucket.request, false, true);
  CHECK(after.input == bucket.at(0));
  CHECK(after.output == nullptr);
  CHECK(after.moves_out.size() == 2);
}
