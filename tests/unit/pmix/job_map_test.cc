// Tests of how hvrun-pmix tells PMIx of a job.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/pmix/job_map.h"

#include <doctest/doctest.h>

#include <string_view>

using namespace hv;
using namespace hv::launcher;

namespace {

wire::PmixJob job_on(std::vector<std::string> hosts, std::vector<std::uint32_t> host_of_rank) {
  wire::PmixJob job;
  job.world = {"space", std::move(hosts), std::move(host_of_rank), {}};
  job.world.program_of_rank.resize(job.world.host_of_rank.size());
  job.folder = "/tmp/folder";
  return job;
}

const pmix::Info* find(InfoList& infos, std::string_view key, std::size_t which = 0) {
  for (std::size_t i = 0; i < infos.size(); ++i)
    if (infos.data()[i].key == key && which-- == 0) return &infos.data()[i];
  FAIL("no info of that key");
  return nullptr;
}

const pmix::Info* of_rank(InfoList& infos, std::size_t rank, std::string_view key) {
  const auto* array =
      static_cast<const pmix::DataArray*>(find(infos, "pmix.pdata", rank)->value.data.pointer);
  const auto* members = static_cast<const pmix::Info*>(array->array);
  for (std::size_t i = 0; i < array->size; ++i)
    if (members[i].key == key) return &members[i];
  return nullptr;
}

}  // namespace

TEST_CASE("ranks of hosts are listed in PMIx's format") {
  const wire::MpiWorld world{"space", {"a", "b"}, {0, 1, 0, 1, 1}, {}};
  CHECK(ranks_on(world, 1) == std::vector<std::uint32_t>{1, 3, 4});
  CHECK(ranks_text(ranks_on(world, 1)) == "1,3,4");
  CHECK(process_text(world) == "0,2;1,3,4");
}

TEST_CASE("names of nodes hold no separator of PMIx, are no addresses, and differ") {
  CHECK(node_names({"node1", "a.b-c_d"}) == std::vector<std::string>{"node1", "a.b-c_d"});
  CHECK(node_names({"10.0.0.1", "fe80::1%eth0"}) ==
        std::vector<std::string>{"node-10.0.0.1", "fe80--1-eth0"});
  CHECK(node_names({"a,b", "a;b", ""}) == std::vector<std::string>{"a-b", "a-b-1", "node-"});
  CHECK(node_names({"a-1", "a", "a"}) == std::vector<std::string>{"a-1", "a", "a-2"});
  CHECK(node_names({"a-2", "a", "a"}) == std::vector<std::string>{"a-2", "a", "a-2-2"});
}

TEST_CASE("a rank can request its own data and its host's") {
  wire::PmixJob job = job_on({"a", "b"}, {0, 1, 1});
  job.host = 1;
  InfoList infos = job_infos(job, "nodes", "ranks");
  CHECK(find(infos, "pmix.job.size")->value.data.uint32 == 3);
  CHECK(find(infos, "pmix.local.size")->value.data.uint32 == 2);
  CHECK(find(infos, "pmix.lldr")->value.data.uint32 == 1);
  CHECK(find(infos, "pmix.lpeers")->value.data.text == std::string_view("1,2"));
  CHECK(find(infos, "pmix.nmap")->value.data.text == std::string_view("nodes"));
  CHECK(of_rank(infos, 2, "pmix.rank")->value.data.uint32 == 2);
  CHECK(of_rank(infos, 2, "pmix.lrank")->value.data.uint16 == 1);
  CHECK(of_rank(infos, 2, "pmix.nodeid")->value.data.uint32 == 1);
  CHECK(of_rank(infos, 2, "pmix.hname")->value.data.text == std::string_view("b"));
  CHECK(of_rank(infos, 2, "pmix.pdir")->value.data.text == std::string_view("/tmp/folder/2"));
  CHECK(of_rank(infos, 0, "pmix.pdir") == nullptr);  // its folder is on another host
}

TEST_CASE("a rank can request which of the job's programs it runs") {
  wire::PmixJob job = job_on({"a"}, {0, 0, 0, 0});
  job.world.program_of_rank = {0, 1, 1, 2};
  InfoList infos = job_infos(job, "nodes", "ranks");
  CHECK(find(infos, "pmix.job.napps")->value.data.uint32 == 3);
  const std::uint32_t leaders[] = {0, 1, 1, 3}, among[] = {0, 0, 1, 0};
  for (std::size_t rank = 0; rank < 4; ++rank) {
    CHECK(of_rank(infos, rank, "pmix.appnum")->value.data.uint32 ==
          job.world.program_of_rank[rank]);
    CHECK(of_rank(infos, rank, "pmix.aldr")->value.data.uint32 == leaders[rank]);
    CHECK(of_rank(infos, rank, "pmix.apprank")->value.data.uint32 == among[rank]);
  }
}

TEST_CASE("an impossible job is refused") {
  CHECK(is_well_formed(job_on({"a"}, {0, 0})));
  CHECK_FALSE(is_well_formed(job_on({"a"}, {0, 1})));
  CHECK_FALSE(is_well_formed(job_on({"a"}, {})));
  wire::PmixJob short_of_one = job_on({"a"}, {0, 0});
  short_of_one.world.program_of_rank.pop_back();
  CHECK_FALSE(is_well_formed(short_of_one));
  CHECK_FALSE(is_well_formed(job_on({}, {})));
  wire::PmixJob job = job_on({"a", "b"}, {0});
  job.host = 1;
  CHECK_FALSE(is_well_formed(job));  // no rank here
  job = job_on({"a"}, {0});
  job.world.space = std::string(256, 's');
  CHECK_FALSE(is_well_formed(job));
  job = job_on({"a"}, {0});
  job.folder = "relative";
  CHECK_FALSE(is_well_formed(job));
}
