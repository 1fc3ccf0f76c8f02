// Who carries out what lies in GPUs' memory: the same on every member, whatever they have told.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/gpu/gpu_choice.h"

#include <doctest/doctest.h>

using namespace hv::runtime;
using Way = GpuChoice::Way;

namespace {

GpuFacts facts_of(char gpu, int version = 22803) {
  GpuFacts facts;
  facts.is_usable = 1;
  facts.version = version;
  facts.gpu[0] = gpu;
  put_words(facts.card, "machine " + std::to_string(gpu));
  put_words(facts.host, "node1");
  return facts;
}

bool has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("members with the same NCCL and a GPU each go by the plugin") {
  CHECK(choose_gpu_way({facts_of(1)}).way == Way::kPlugin);
  CHECK(choose_gpu_way({facts_of(1), facts_of(2), facts_of(3)}).way == Way::kPlugin);
}

TEST_CASE("one member that lacks something takes all through the host, and tells") {
  std::vector<GpuFacts> facts = {facts_of(1), facts_of(2), facts_of(3)};
  facts[2].is_usable = 0;
  put_words(facts[2].words, "there is no libnccl.so.2");
  GpuChoice choice = choose_gpu_way(facts);
  CHECK(choice.way == Way::kStaged);
  CHECK(choice.teller == 2);
  CHECK(choice.words == "there is no libnccl.so.2");

  facts = {facts_of(1), facts_of(2, 22907)};
  facts[0].rank = 2;
  facts[1].rank = 5;
  choice = choose_gpu_way(facts);
  CHECK(choice.way == Way::kStaged);
  CHECK(choice.teller == 1);
  CHECK(choice.words ==
        "NCCL is 2.28.3 on rank 2 and 2.29.7 on rank 5; try: the same on all ranks");
}

TEST_CASE("a member that has joined puts the choice off") {
  std::vector<GpuFacts> facts = {facts_of(1), GpuFacts()};
  facts[1].is_absent = 1;
  CHECK(choose_gpu_way(facts).way == Way::kStagedNow);
}

TEST_CASE("two ranks on one GPU are named with it, as the job has them, unless both may") {
  std::vector<GpuFacts> facts = {facts_of(1), facts_of(2), facts_of(1)};
  for (int member = 0; member < 3; ++member)
    facts[static_cast<std::size_t>(member)].rank = 4 + member;
  GpuChoice choice = choose_gpu_way(facts);
  CHECK(choice.way == Way::kRefused);
  CHECK(has(choice.words, "ranks 4 and 6 use the same GPU"));
  CHECK(has(choice.words, "GPU-01000000-0000-0000-0000-000000000000 on host node1; try: "));
  CHECK(has(choice.words, "HVRUN_SHARE_GPU=1 on all ranks"));
  facts[0].asks_to_share = facts[0].shares = 1;
  choice = choose_gpu_way(facts);
  CHECK(choice.way == Way::kRefused);
  CHECK(has(choice.words, "; HVRUN_SHARE_GPU=1 has no effect, for rank 6 has not set it; try: "));
  facts[2].asks_to_share = 1;
  choice = choose_gpu_way(facts);
  CHECK(choice.way == Way::kRefused);
  CHECK(has(choice.words, "no effect, for NCCL is 2.28.3 on rank 6 and can do it from 2.30 on"));
  CHECK(!has(choice.words, "on all ranks"));
  facts[2].shares = 1;
  CHECK(choose_gpu_way(facts).way == Way::kPlugin);
}

TEST_CASE("MIG devices of one GPU are taken through the host, and named") {
  std::vector<GpuFacts> facts = {facts_of(1), facts_of(2), facts_of(3)};
  put_words(facts[2].card, words_in(facts[0].card));
  facts[0].rank = 4;
  facts[2].rank = 6;
  const GpuChoice choice = choose_gpu_way(facts);
  CHECK(choice.way == Way::kStaged);
  CHECK(choice.teller == 2);
  CHECK(has(choice.words,
            "ranks 4 and 6 have MIG devices of one GPU, GPU-01000000-0000-0000-0000-000000000000 "
            "and GPU-03000000-0000-0000-0000-000000000000 on host node1, which NCCL does not"));
  facts[0].shares = facts[2].shares = 1;
  CHECK(choose_gpu_way(facts).way == Way::kPlugin);
}

TEST_CASE("words of another rank end where their field does") {
  GpuFacts facts;
  std::fill(std::begin(facts.words), std::end(facts.words), 'x');
  CHECK(choose_gpu_way({facts}).words == std::string(sizeof facts.words, 'x'));
  put_words(facts.words, std::string(5000, 'y'));
  CHECK(choose_gpu_way({facts}).words == std::string(sizeof facts.words - 1, 'y'));
}
