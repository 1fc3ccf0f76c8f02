// The choice of an algorithm: the table, wishes, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include "src/contract/algorithms.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "src/base/error.h"

namespace {

using hv::JobExtent;

std::string chosen(const std::string& collective, std::int64_t bytes, JobExtent extent,
                   const std::string& wishes = {}, bool deterministic = false) {
  return std::string(
      hv::choose_algorithm(hv::parse_algorithms(wishes), {collective, extent, bytes, deterministic})
          .name);
}

std::string refusal(const std::string& text) {
  try {
    hv::parse_algorithms(text);
    return {};
  } catch (const hv::Error& error) {
    CHECK(error.kind() == hv::ErrorKind::kUsage);
    return std::string(error.what()) + " " + error.hint();
  }
}

}  // namespace

TEST_CASE("an algorithm is chosen by size and by where the ranks lie") {
  CHECK(chosen("allreduce", 4 << 20, {1, 1}) == "alone");
  CHECK(chosen("allreduce", 1 << 20, {2, 1}) == "direct");
  CHECK(chosen("allreduce", (1 << 20) + 1, {2, 1}) == "inplace");
  CHECK(chosen("allreduce", 64 << 20, {3, 1}) == "inplace");
  CHECK(chosen("allreduce", 16 << 10, {3, 1}) == "direct");
  CHECK(chosen("allreduce", (16 << 10) + 1, {3, 1}) == "shares");
  CHECK(chosen("allreduce", 32 << 10, {2, 2}) == "hierarchical");
  CHECK(chosen("allreduce", 1 << 20, {4, 2}) == "torus");
  CHECK(chosen("cross", 1 << 20, {2, 2}) == "exchange");
  CHECK(chosen("cross", 1 << 20, {3, 3}) == "scatter");
  CHECK(chosen("cross", 16 << 10, {4, 4}) == "exchange");
  CHECK(chosen("cross", (16 << 10) + 1, {4, 4}) == "scatter");
  CHECK(chosen("cross", 16 << 10, {10, 5}) == "doubling");
  CHECK(chosen("cross", (16 << 10) + 1, {16, 16}) == "scatter");
  CHECK(chosen("cross", 64 << 10, {17, 17}) == "doubling");
  CHECK(chosen("cross", (64 << 10) + 1, {64, 64}) == "scatter");
  CHECK(chosen("cross", (64 << 10) + 1, {65, 65}) == "halving");
  CHECK(chosen("broadcast", 64 << 20, {4, 1}) == "tree");
  CHECK(chosen("broadcast", 512 << 10, {8, 8}) == "tree");
  CHECK(chosen("broadcast", (512 << 10) + 1, {16, 8}) == "chain");
  CHECK(chosen("broadcast", 4 << 20, {9, 9}) == "tree");
  CHECK(chosen("broadcast", (4 << 20) + 1, {64, 64}) == "chain");
  CHECK(chosen("broadcast", 64 << 20, {65, 65}) == "tree");
  CHECK(chosen("broadcast", (64 << 20) + 1, {65, 65}) == "chain");
  CHECK(chosen("allgather", 1, {2, 1}) == "pieces");
  CHECK(chosen("reducescatter", 1, {2, 2}) == "pieces");
  CHECK(chosen("alltoall", 1, {2, 1}) == "streams");
  CHECK(chosen("barrier", 0, {1, 1}) == "byte");
}

TEST_CASE("every collective has an algorithm for every extent and size, deterministic or not") {
  std::set<std::string> collectives;
  for (const hv::AlgorithmRow& row : hv::algorithm_table()) collectives.emplace(row.collective);
  CHECK(collectives.size() == 10);
  for (const std::string& collective : collectives)
    for (const JobExtent extent :
         {JobExtent{1, 1}, {2, 1}, {9, 1}, {2, 2}, {3, 2}, {7, 7}, {64, 8}, {65, 65}})
      for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{65537}, INT64_MAX})
        for (const bool deterministic : {false, true}) {
          if (collective == "cross" && extent.hosts == 1) continue;  // nobody asks
          CHECK_FALSE(chosen(collective, bytes, extent, {}, deterministic).empty());
        }
}

TEST_CASE("a wish goes before the table, up to its size and where it can work") {
  CHECK(chosen("cross", 1 << 20, {4, 4}, "cross:ring") == "ring");
  CHECK(chosen("cross", 1 << 20, {4, 4}, "allreduce:torus,cross:halving@1M") == "halving");
  CHECK(chosen("cross", (1 << 20) + 1, {4, 4}, "cross:halving@1M,cross:ring") == "ring");
  CHECK(chosen("cross", (1 << 20) + 1, {4, 4}, "cross:halving@1M") == "scatter");
  CHECK(chosen("allreduce", 4, {4, 2}, "allreduce:torus") == "torus");
  // A set of that job on one host, where a torus is none.
  CHECK(chosen("allreduce", 1 << 20, {2, 1}, "allreduce:torus") == "direct");
  CHECK(chosen("allreduce", 8 << 20, {3, 1}, "allreduce:direct") == "direct");
}

TEST_CASE("nothing is taken by itself whose bits depend on place") {
  for (const hv::AlgorithmRow& row : hv::algorithm_table())
    if (row.order == hv::FoldOrder::kPlace) CHECK(row.up_to_bytes < 0);
}

TEST_CASE("neither what is deterministic nor half precision gets a tree without asking for it") {
  for (const int hosts : {2, 3, 5, 16, 17, 64, 65, 1000})
    for (const std::int64_t bytes : {1, 4 << 10, 16 << 10, 64 << 10, 1 << 26})
      for (const bool deterministic : {false, true}) {
        const hv::AlgorithmQuestion question{
            "cross", {hosts, hosts}, bytes, deterministic, !deterministic};
        CHECK(hv::choose_algorithm({}, question).order == hv::FoldOrder::kRank);
      }
  hv::AlgorithmQuestion half{"cross", {65, 65}, 4 << 10, false, true};
  CHECK(hv::choose_algorithm({}, half).name == std::string("exchange"));
  ++half.bytes;
  CHECK(hv::choose_algorithm({}, half).name == std::string("scatter"));
  CHECK(hv::choose_algorithm(hv::parse_algorithms("cross:tree"), half).name == std::string("tree"));
}

TEST_CASE("what is deterministic never gets an algorithm whose bits depend on place or fusion") {
  CHECK(chosen("cross", 1 << 20, {4, 4}, "cross:ring", true) == "scatter");
  CHECK(chosen("cross", 1 << 20, {4, 4}, "cross:halving@2M", true) == "scatter");
  CHECK(chosen("cross", 1 << 20, {4, 4}, "cross:halving", true) == "halving");
}

TEST_CASE("wishes are read word by word, and refused with the words there are") {
  CHECK(hv::parse_algorithms("").empty());
  const auto wishes = hv::parse_algorithms("allreduce:shares@64K,cross:ring");
  REQUIRE(wishes.size() == 2);
  CHECK(wishes[0].up_to_bytes == 65536);
  CHECK(wishes[1].up_to_bytes == INT64_MAX);
  for (const char* text : {"ring", "allreduce:", "allreduce:ringo", "cross:ring@", "cross:ring@x",
                           "cross:ring@-1", "cross:ring,", ",", ":", "cross:ring:tree"})
    CHECK_MESSAGE(refusal(text).find("cross:ring") != std::string::npos, text);
  std::string many = "cross:ring";
  for (int i = 0; i < 64; ++i) many += ",cross:ring";
  CHECK(refusal(many).find("64") != std::string::npos);
  CHECK(refusal(std::string(5000, 'x')).find("4096") != std::string::npos);
}

TEST_CASE("a wish that can never come true in a job is told in words") {
  const auto wrong = [](const char* text, JobExtent job, bool deterministic) {
    return hv::impossible_wish(hv::parse_algorithms(text), job, deterministic);
  };
  CHECK(wrong("cross:exchange@64K,cross:tree", {8, 4}, true).find("another order") !=
        std::string::npos);
  CHECK(wrong("cross:exchange@64K,cross:tree", {8, 4}, false).empty());
  CHECK(wrong("cross:exchange@64K,cross:scatter,allreduce:torus", {8, 4}, true).empty());
  CHECK(wrong("", {4, 1}, true).empty());
  CHECK(wrong("allreduce:torus,cross:ring", {4, 2}, false).empty());
  CHECK(wrong("cross:ring", {4, 1}, false) ==
        "HVRUN_ALGORITHM=cross:ring works for several hosts; this job has 4 ranks on 1 host; try: "
        "one that 'hvrun env --algorithms' lists for it");
  CHECK(wrong("allreduce:direct", {4, 2}, false).find("one host") != std::string::npos);
  CHECK(wrong("cross:tree@1K", {4, 4}, true).find("all sizes") != std::string::npos);
  CHECK(wrong("cross:tree", {4, 4}, true).empty());
  CHECK(wrong("cross:ring", {4, 4}, true).find("HVRUN_DETERMINISTIC") != std::string::npos);
}

TEST_CASE("the printed table shows wishes first, then every row") {
  const std::string text = hv::algorithms_text(hv::parse_algorithms("cross:ring@1M"));
  const std::size_t wish = text.find("HVRUN_ALGORITHM ");
  REQUIRE(wish != std::string::npos);
  CHECK(text.find("1 MiB\n", wish) < text.find('\n', wish));
  for (const hv::AlgorithmRow& row : hv::algorithm_table())
    CHECK(text.find(row.name, wish) != std::string::npos);
}
