// Tests of the words of a mismatch.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/mismatch.h"

#include <doctest/doctest.h>

using namespace hv;
using namespace hv::runtime;

namespace {

TensorDescription float_allreduce(std::vector<std::int64_t> shape) {
  TensorDescription description;
  description.kind = CollectiveKind::kAllreduce;
  description.type = ElementType::kFloat32;
  description.shape = std::move(shape);
  return description;
}

std::string start_of(const Status& status) {
  return status.message.substr(0, status.message.find(';'));
}

}  // namespace

TEST_CASE("one variant is agreement") {
  CHECK(judge("w", {}).ok());
  CHECK(judge("w", {{float_allreduce({1}), {0, 1, 2}, {}}}).ok());
}

TEST_CASE(
    "a mismatch names ranks and what each has, by lowest rank whatever the order of arrival") {
  const Variant three{float_allreduce({4, 3}), {3}, {}},
      others{float_allreduce({3, 4}), {2, 0, 1}, {}};
  const std::string words = "tensor 'w': ranks 0-2 have float32 [3,4], rank 3 has float32 [4,3]";
  CHECK(start_of(judge("w", {three, others})) == words);
  CHECK(start_of(judge("w", {others, three})) == words);
  CHECK(judge("w", {three, others}).code == StatusCode::kMismatch);
}

TEST_CASE("only what differs is told beside type and shape") {
  TensorDescription other = float_allreduce({});
  other.reduction = Reduction::kMax;
  CHECK(start_of(judge("w", {{float_allreduce({}), {0}, {}}, {other, {1}, {}}})) ==
        "tensor 'w': rank 0 has float32 [] with reduction sum, rank 1 has float32 [] with "
        "reduction max");
}

TEST_CASE("an allgather's own extent is a star") {
  TensorDescription gather = float_allreduce({kVaries, 2});
  gather.kind = CollectiveKind::kAllgather;
  CHECK(start_of(judge("w", {{gather, {0}, {5}}, {float_allreduce({7, 2}), {1}, {}}})) ==
        "tensor 'w': rank 0 has allgather of float32 [*,2], rank 1 has allreduce of float32 [7,2]");
}

TEST_CASE("the library's own operations are told in words, without their names") {
  CHECK(tensor_words("w") == "tensor 'w'");
  CHECK(tensor_words(kBarrierName) == "barrier");
  CHECK(tensor_words(kJoinName) == "hvrun_join");
  TensorDescription one, other;
  one.kind = other.kind = CollectiveKind::kAddSet;
  one.ranks = {0};
  other.ranks = {0, 1};
  const Status verdict = judge(kChangeName, {{one, {0}, {}}, {other, {1}, {}}});
  CHECK(start_of(verdict) ==
        "change of process sets: rank 0 has addition of a process set of rank 0, rank 1 has "
        "addition of a process set of ranks 0-1");
  CHECK(verdict.message.find("hvrun_process_set_add with the same ranks") != std::string::npos);
}

TEST_CASE("a name is printable in the words whatever it holds") {
  const Variant one{float_allreduce({1}), {0}, {}}, two{float_allreduce({2}), {1}, {}};
  CHECK(judge("a\nb", {one, two}).message.find('\n') == std::string::npos);
}

TEST_CASE("a thousand variants do not become a thousand phrases") {
  std::vector<Variant> variants;
  for (std::uint32_t rank = 0; rank < 1000; ++rank)
    variants.push_back({float_allreduce({rank}), {rank}, {}});
  const std::string words = judge("w", variants).message;
  CHECK(words.find("and 992 more variants") != std::string::npos);
  CHECK(words.size() < 1000);
}
