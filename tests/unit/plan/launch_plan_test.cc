// Tests of placement.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/launch_plan.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "launcher/allocation/host_expression.h"
#include "launcher/allocation/rankfile.h"
#include "launcher/plan/plan_text.h"
#include "src/base/error.h"

using namespace hv::launcher;

namespace {

using Facts = std::vector<std::optional<HostFacts>>;

HostFacts host(int gpus, int usable_cores) {
  HostFacts facts;
  facts.gpus.resize(static_cast<std::size_t>(gpus));
  facts.usable_cores = usable_cores;
  return facts;
}

JobSpec launch_spec(std::optional<int> ranks) {
  JobSpec spec;
  spec.ranks = ranks;
  spec.programs = {{{"train", "--epochs", "3"}}};
  return spec;
}

LaunchPlan plan_for(const std::string& hosts, std::optional<int> ranks, Facts facts = {}) {
  const HostList list = parse_host_expression(hosts);
  facts.resize(list.entries.size());
  return make_plan(launch_spec(ranks), list, facts);
}

std::string picture(const LaunchPlan& plan) {
  std::string text;
  for (const PlannedRank& rank : plan.ranks) {
    text += plan.hosts[static_cast<std::size_t>(rank.host)].name +
            std::to_string(rank.identity.local_rank) + " ";
  }
  return text;
}

}  // namespace

TEST_CASE("ranks fill the first host's slots, then the next's") {
  CHECK(picture(plan_for("a:2,b:2", 4)) == "a0 a1 b0 b1 ");
  CHECK(picture(plan_for("a:2,b:2", 3)) == "a0 a1 b0 ");
  CHECK(picture(plan_for("a:2,b:2", 2)) == "a0 a1 ");
  CHECK(picture(plan_for("a:1,b:3", std::nullopt)) == "a0 b0 b1 b2 ");
}

TEST_CASE("what numbers of GPUs count is said where CUDA_VISIBLE_DEVICES is inherited") {
  HostFacts facts = host(2, 8);
  facts.visible_devices = "4,5";
  const auto warnings = [&](HostEntry entry) {
    entry.name = "a";
    HostList list;
    list.entries.push_back(std::move(entry));
    return make_plan(launch_spec(1), list, {facts}).warnings;
  };
  HostEntry named, excluded, by_uuid;
  named.gpus = {"0"};
  excluded.without_gpus = {1};
  const std::vector<std::string> expected{
      "host a: numbers of GPUs count those of CUDA_VISIBLE_DEVICES=4,5, which is set there: 0 is "
      "the first of them"};
  CHECK(warnings(named) == expected);
  CHECK(warnings(excluded) == expected);
  facts.gpus[0].uuid = "GPU-1";
  by_uuid.gpus = {"GPU-1"};
  CHECK(warnings(by_uuid).empty());
  CHECK(warnings(HostEntry{}).empty());
  facts.visible_devices.clear();
  CHECK(warnings(named).empty());
}

TEST_CASE("hosts without a rank are not in the plan") {
  CHECK(plan_for("a:2,b:2", 2).hosts.size() == 1);
}

TEST_CASE("local and cross numbers follow from the placement") {
  const LaunchPlan plan = plan_for("a:3,b:1,c:2", 6);
  struct Row {
    int local_rank, local_size, cross_rank, cross_size;
  };
  const Row rows[] = {{0, 3, 0, 3}, {1, 3, 0, 2}, {2, 3, 0, 1},
                      {0, 1, 1, 3}, {0, 2, 2, 3}, {1, 2, 1, 2}};
  for (std::size_t i = 0; i < 6; ++i) {
    CAPTURE(i);
    const hv::RankIdentity& who = plan.ranks[i].identity;
    CHECK(who.rank == static_cast<int>(i));
    CHECK(who.size == 6);
    CHECK(who.local_rank == rows[i].local_rank);
    CHECK(who.local_size == rows[i].local_size);
    CHECK(who.cross_rank == rows[i].cross_rank);
    CHECK(who.cross_size == rows[i].cross_size);
  }
}

TEST_CASE("the error about too few slots folds hosts as -H takes them") {
  try {
    plan_for("n[01-64]:2,big:4,n65:2", 135);
    FAIL("no error");
  } catch (const hv::Error& error) {
    const std::string text = error.what();
    CHECK(text.find("134 slots in all (n[01-64]:2, big:4, n65:2)") != std::string::npos);
    CHECK(error.hint().find("(-H n[01-64]:3,big:4,n65:3)") != std::string::npos);
  }
}

TEST_CASE("more ranks than slots on named hosts is an error with both numbers") {
  try {
    plan_for("a:2,b:1", 4);
    FAIL("no error");
  } catch (const hv::Error& error) {
    const std::string text = error.what();
    CHECK(text.find("4 ranks") != std::string::npos);
    CHECK(text.find("3 slots") != std::string::npos);
    CHECK(text.find("a:2, b:1") != std::string::npos);
    CHECK(error.hint().find("-H a:2,b:2)") != std::string::npos);
  }
}

TEST_CASE("slots that are not stated are the host's GPUs, else one") {
  CHECK(picture(plan_for("a,b", std::nullopt, {host(2, 64), host(0, 64)})) == "a0 a1 b0 ");
  CHECK(plan_for("a", std::nullopt, {host(2, 64)}).ranks[1].gpus == std::vector{1});
}

TEST_CASE("without facts one slot is assumed, and the plan says so") {
  const LaunchPlan plan = plan_for("a,b:2", std::nullopt);
  CHECK(plan.hosts[0].slots_assumed);
  CHECK_FALSE(plan.hosts[1].slots_assumed);
  CHECK(picture(plan) == "a0 b0 b1 ");
}

TEST_CASE("this machine runs a rank per GPU, else one, and warns once of more than its cores") {
  const HostList here{{}, true};
  const Facts facts{host(0, 2)};
  CHECK(make_plan(launch_spec(std::nullopt), here, facts).ranks.size() == 1);
  CHECK(make_plan(launch_spec(std::nullopt), here, {host(8, 2)}).ranks.size() == 8);
  CHECK(make_plan(launch_spec(std::nullopt), here, {host(8, 128)}).ranks.size() == 8);
  CHECK(make_plan(launch_spec(2), here, facts).warnings.empty());
  CHECK(make_plan(launch_spec(100), here, {host(8, 128)}).warnings.empty());
  JobSpec each = launch_spec(std::nullopt);
  each.placement.map_by = {MapBy::kPerNode, 2};
  CHECK(make_plan(each, here, facts).ranks.size() == 2);
  CHECK(make_plan(each, here, facts).warnings.empty());
  const LaunchPlan crowded = make_plan(launch_spec(5), here, facts);
  CHECK(crowded.ranks.size() == 5);
  CHECK(crowded.warnings.size() == 1);
}

TEST_CASE("this machine by its name takes ranks as this machine does") {
  HostList here = parse_host_expression("localhost");
  here.is_this_machine_by_name = true;
  const LaunchPlan crowded = make_plan(launch_spec(5), here, {host(0, 2)});
  CHECK(picture(crowded) == "localhost0 localhost1 localhost2 localhost3 localhost4 ");
  CHECK(crowded.warnings ==
        std::vector<std::string>{"5 ranks share the 2 cores or GPUs of this machine"});
  CHECK(make_plan(launch_spec(std::nullopt), here, {host(8, 128)}).ranks.size() == 8);
  const std::string lines = "rank 0=localhost\nrank 1=localhost\nrank 2=localhost\n";
  CHECK(make_plan(launch_spec(3), add_rankfile(here, lines, "f"), {host(0, 2)}).ranks.size() == 3);
  here.entries[0].without_gpus = {0};
  CHECK(make_plan(launch_spec(std::nullopt), here, {host(8, 128)}).ranks.size() == 7);
  CHECK(make_plan(launch_spec(5), here, {host(0, 8)}).ranks.size() == 5);
  CHECK_THROWS_AS(make_plan(launch_spec(std::nullopt), here, {host(1, 8)}), hv::Error);
  CHECK_THROWS_AS(make_plan(launch_spec(5), parse_host_expression("localhost:2"), {host(0, 2)}),
                  hv::Error);
}

TEST_CASE("--exclude of what is no GPU is warned of") {
  HostList list = parse_host_expression("a,b");
  list.entries[0].without_gpus = list.entries[1].without_gpus = {0, 5};
  CHECK(make_plan(launch_spec(std::nullopt), list, {host(2, 8), host(0, 8)}).warnings ==
        std::vector<std::string>{
            "host a: --exclude of slot 5 has no effect, because the host has 2 GPUs",
            "host b: --exclude of slots 0,5 has no effect, because the host has 0 GPUs"});
}

TEST_CASE("where no slot is left the hint names what took them") {
  const auto hint_for = [](const JobSpec& spec, const HostList& list, const HostFacts& facts) {
    try {
      (void)make_plan(spec, list, {facts});
      return std::string("it has a plan");
    } catch (const hv::Error& error) {
      return error.hint();
    }
  };
  HostList list = parse_host_expression("a");
  JobSpec by_gpu = launch_spec(3);
  by_gpu.placement.map_by = {MapBy::kGpu};
  by_gpu.hosts.exclude = "b";
  CHECK(hint_for(by_gpu, list, host(0, 8)) ==
        "name more hosts, lower -np, or leave out --map-by gpu");
  list.entries[0].without_gpus = {0};
  CHECK(hint_for(launch_spec(std::nullopt), list, host(1, 8)) == "exclude fewer GPUs (--exclude)");
  JobSpec each = launch_spec(1);
  each.placement.gpus_per_rank = 4;
  CHECK(hint_for(each, parse_host_expression("a:1"), host(2, 8)) ==
        "lower --gpus-per-rank, or leave it out");
}

TEST_CASE("hosts beyond what the ranks can need get no agent") {
  const HostList list = parse_host_expression("a:2,b:2,c:2");
  CHECK(hosts_needed(launch_spec(2), list) == 1);
  CHECK(hosts_needed(launch_spec(3), list) == 2);
  CHECK(hosts_needed(launch_spec(std::nullopt), list) == 3);
  CHECK(hosts_needed(launch_spec(9), list) == 3);
}

TEST_CASE("the plan as JSON has what scripts read, and unknowns are null") {
  const LaunchPlan plan = plan_for("a,b:2", 3);
  JobSpec spec = launch_spec(3);
  spec.programs = {{{"train", "\xff"}}};
  const auto json = nlohmann::json::parse(plan_as_json(spec, plan));
  REQUIRE(json["ranks"].size() == 3);
  CHECK(json["ranks"][2]["host"] == "b");
  CHECK(json["ranks"][2]["local_rank"] == 1);
  CHECK(json["ranks"][2]["local_size"] == 2);
  CHECK(json["ranks"][2]["cross_rank"] == 0);
  CHECK(json["ranks"][2]["cross_size"] == 1);
  CHECK(json["ranks"][0]["gpu"].is_null());
  CHECK(json["hosts"][0]["slots_assumed"] == true);
  CHECK(json["program"][1] == "\\xff");
}

TEST_CASE("the plan as text names every rank once") {
  const LaunchPlan plan = plan_for("alpha:1,beta", 2);
  const std::string text = plan_as_text(launch_spec(2), plan);
  CHECK(text.find("2 ranks on 2 hosts, each runs: train --epochs 3\n") == 0);
  CHECK(text.find("\n0     alpha") != std::string::npos);
  CHECK(text.find("\n1     beta *") != std::string::npos);
}

TEST_CASE("--map-by gpu gives each GPU a rank, or several GPUs, and leaves hosts without any out") {
  const HostList list = parse_host_expression("a:8,b:8,c:8");
  const Facts facts{host(4, 64), host(0, 64), host(2, 64)};
  JobSpec spec = launch_spec(std::nullopt);
  spec.placement.map_by = {MapBy::kGpu};
  CHECK(picture(make_plan(spec, list, facts)) == "a0 a1 a2 a3 c0 c1 ");
  spec.placement.gpus_per_rank = 2;
  const LaunchPlan plan = make_plan(spec, list, facts);
  CHECK(picture(plan) == "a0 a1 c0 ");
  CHECK(plan.hosts[1].entry == 2);
  CHECK(plan.ranks[1].gpus == std::vector{2, 3});
  CHECK(plan.ranks[2].gpus == std::vector{0, 1});
  CHECK(plan.ranks[2].identity.cross_rank == 1);
  spec.ranks = 4;
  CHECK_THROWS_AS(make_plan(spec, list, facts), hv::Error);
}

TEST_CASE(
    "ranks use the GPUs that their host's line names, and a GPU that is not there is an error") {
  HostList list = parse_host_expression("a,b");
  list.entries[0].gpus = {"3", "GPU-1"};
  list.entries[1].without_gpus = {0};
  HostFacts named = host(4, 8);
  named.gpus[0].uuid = "GPU-0";
  named.gpus[1].uuid = "GPU-1";
  const Facts facts{named, host(2, 8)};
  const LaunchPlan plan = make_plan(launch_spec(std::nullopt), list, facts);
  CHECK(picture(plan) == "a0 a1 b0 ");
  CHECK(plan.ranks[0].gpus == std::vector{3});
  CHECK(plan.ranks[1].gpus == std::vector{1});
  CHECK(plan.ranks[2].gpus == std::vector{1});
  list.entries[0].gpus = {"4"};
  CHECK_THROWS_AS(make_plan(launch_spec(std::nullopt), list, facts), hv::Error);
  list.entries[0].gpus = {"GPU-7"};
  CHECK_THROWS_AS(make_plan(launch_spec(std::nullopt), list, facts), hv::Error);
}

TEST_CASE("--oversubscribe lets ranks share slots, up to max-slots") {
  HostList list = parse_host_expression("a:2,b:2");
  list.entries[0].max_slots = 2;
  JobSpec spec = launch_spec(7);
  CHECK_THROWS_AS(make_plan(spec, list, Facts(2)), hv::Error);
  spec.placement.oversubscribe = true;
  CHECK(picture(make_plan(spec, list, Facts(2))) == "a0 a1 b0 b1 b2 b3 b4 ");
  list.entries[1].max_slots = 4;
  CHECK_THROWS_AS(make_plan(spec, list, Facts(2)), hv::Error);
}

TEST_CASE("ranks that hosts take in turn keep their local and cross numbers by host") {
  JobSpec spec = launch_spec(5);
  spec.placement.map_by = {MapBy::kNode};
  const LaunchPlan plan = make_plan(spec, parse_host_expression("a:3,b:1,c:2"), Facts(3));
  CHECK(picture(plan) == "a0 b0 c0 a1 c1 ");
  CHECK(plan.ranks[3].identity.cross_rank == 0);
  CHECK(plan.ranks[4].identity.cross_rank == 1);
  CHECK(plan.ranks[4].identity.cross_size == 2);
  CHECK(hosts_needed(spec, parse_host_expression("n[1-9]:2")) == 5);
}

TEST_CASE("a rankfile says where each rank is, which cores and GPUs it has") {
  const std::string file = "rank 1=b slot=0-1,4 gpus=1\nrank 0=+n1\nrank 2=a\n";
  const HostList list = add_rankfile(parse_host_expression("a:2,b:2"), file, "ranks");
  const Facts facts{host(0, 8), host(2, 8)};
  const LaunchPlan plan = make_plan(launch_spec(std::nullopt), list, facts);
  CHECK(picture(plan) == "b0 b1 a0 ");
  CHECK(plan.ranks[1].cores == std::vector{0, 1, 4});
  CHECK(plan.ranks[1].gpus == std::vector{1});
  CHECK(plan.ranks[0].gpus == std::vector{0});
  CHECK(plan.ranks[0].host == 0);  // who has MASTER_PORT
  CHECK(plan.ranks[0].identity.cross_rank == 0);
  CHECK(plan.ranks[2].identity.cross_rank == 1);
  CHECK(make_plan(launch_spec(2), list, facts).ranks.size() == 2);
  CHECK_THROWS_AS(make_plan(launch_spec(4), list, facts), hv::Error);
  const HostList narrow = add_rankfile(parse_host_expression("a:2,b:1"), file, "ranks");
  CHECK_THROWS_WITH(make_plan(launch_spec(std::nullopt), narrow, facts),
                    "ranks:1:8: host b has 1 slot (-H), and this is one rank more\n"
                    "  rank 1=b slot=0-1,4 gpus=1\n         ^");
}

TEST_CASE("of several programs the first ranks run the first one, and so on") {
  JobSpec spec = launch_spec(5);
  spec.programs = {{{"serve"}, "/", 1}, {{"train"}, "/", 3}, {{"watch"}, "/", 1}};
  const LaunchPlan plan = make_plan(spec, parse_host_expression("a:2,b:4"), Facts(2));
  std::string programs;
  for (const PlannedRank& rank : plan.ranks) programs += std::to_string(rank.program);
  CHECK(programs == "01112");
  const auto json = nlohmann::json::parse(plan_as_json(spec, plan));
  CHECK(json["programs"][1] == nlohmann::json{"train"});
  CHECK(json["ranks"][4]["program"] == 2);
  CHECK(plan_as_text(spec, plan).find("5 ranks on 2 hosts") == 0);
  CHECK(plan_as_text(spec, plan).find("ranks 1-3 run: train") != std::string::npos);
}

TEST_CASE("so many ranks a host are the most, on this machine, too") {
  JobSpec spec = launch_spec(2);
  spec.placement.map_by = {MapBy::kPerNode, 1};
  CHECK_THROWS_AS(make_plan(spec, {{}, true}, {host(0, 2)}), hv::Error);
  spec.ranks.reset();
  CHECK(make_plan(spec, {{}, true}, {host(0, 2)}).ranks.size() == 1);
  spec.ranks = 3;
  spec.placement.oversubscribe = true;
  CHECK_THROWS_AS(make_plan(spec, parse_host_expression("a:2,b:2"), Facts(2)), hv::Error);
}

TEST_CASE("--map-by gpu puts nobody on a host without GPUs, oversubscribed or not") {
  JobSpec spec = launch_spec(6);
  spec.placement.map_by = {MapBy::kGpu};
  spec.placement.oversubscribe = true;
  const Facts facts{host(2, 8), host(0, 8)};
  CHECK(picture(make_plan(spec, parse_host_expression("a,b"), facts)) == "a0 a1 a2 a3 a4 a5 ");
  CHECK_THROWS_AS(make_plan(spec, {{}, true}, {host(0, 8)}), hv::Error);
}

namespace {

std::string hint_for(const std::string& scheduler, const std::string& hosts, JobSpec spec) {
  HostList list = parse_host_expression(hosts);
  list.scheduler = scheduler;
  try {
    (void)make_plan(spec, list, Facts(list.entries.size()));
  } catch (const hv::Error& error) {
    return error.hint();
  }
  return "no error";
}

}  // namespace

TEST_CASE("too few slots of a scheduler: the advice speaks of that scheduler") {
  const std::string rest = ", lower -np, or let ranks share slots with --oversubscribe";
  const JobSpec spec = launch_spec(8);
  CHECK(hint_for("Slurm", "a:2,b:2", spec) ==
        "request more tasks (sbatch or salloc --ntasks=8)" + rest);
  CHECK(hint_for("PBS", "a:2,b:2,c:2", spec) ==
        "request more slots (qsub -l select=3:mpiprocs=3; Torque: -l nodes=3:ppn=3)" + rest);
  CHECK(hint_for("LSF", "a:2,b:2", spec) == "request more slots (bsub -n 8)" + rest);
  CHECK(hint_for("SGE", "a:2,b:2", spec) == "request more slots (qsub -pe NAME 8)" + rest);
  CHECK(hint_for("the MPI operator", "a:2,b:2", spec) ==
        "raise slotsPerWorker in the MPIJob to 4, or its number of worker replicas" + rest);
  CHECK(hint_for("", "a:2,b:2", spec) == "name more hosts, state more slots (-H a:4,b:4)" + rest);
  JobSpec by_gpu = spec;
  by_gpu.placement.map_by.by = MapBy::kGpu;
  CHECK(hint_for("Slurm", "a:2,b:2", by_gpu) ==
        "request more nodes of Slurm, lower -np, or leave out --map-by gpu");
  JobSpec per_node = spec;
  per_node.placement.map_by = {MapBy::kPerNode, 1};
  CHECK(
      hint_for("Slurm", "a:2,b:2", per_node).find("request more nodes of Slurm, take --npernode") ==
      0);
}

namespace {

std::string idle_gpus(const std::string& hosts, const GpusOfJob& gpus, const JobSpec& spec) {
  HostList list = parse_host_expression(hosts);
  list.scheduler = "Slurm";
  list.scheduler_gpus = gpus;
  const LaunchPlan plan = make_plan(spec, list, Facts(list.entries.size()));
  return plan.warnings.empty() ? "" : plan.warnings.at(0);
}

}  // namespace

TEST_CASE("fewer ranks than the Slurm job's GPUs are told, with the options that change it") {
  const JobSpec all = launch_spec(std::nullopt);
  CHECK(idle_gpus("a:1,b:1", {0, 4}, all) ==
        "2 ranks use 2 of the 8 GPUs of this Slurm job: --map-by gpu starts a rank for each GPU, "
        "--gpus-per-rank 4 says that a rank uses so many itself");
  CHECK(idle_gpus("a:4,b:4", {0, 4}, launch_spec(3)) ==
        "3 ranks use 3 of the 8 GPUs of this Slurm job: --map-by gpu without -np starts a rank for "
        "each GPU");
  CHECK(idle_gpus("a:1", {4, 0}, all).find("1 rank uses 1 of the 4 GPUs") == 0);
  // As many ranks, but the second host's GPUs are idle.
  CHECK(idle_gpus("a:3,b:1", {0, 2}, all).find("4 ranks use 3 of the 4 GPUs") == 0);
  CHECK(idle_gpus("a:4,b:4", {0, 4}, all) == "");
  CHECK(idle_gpus("a:8,b:8", {0, 4}, all) == "");
  CHECK(idle_gpus("a:4,b:1", {5, 0}, all) == "");
  CHECK(idle_gpus("a:1,b:1", {}, all) == "");
  CHECK(idle_gpus("a,b", {0, 4}, all) == "");  // slots not known yet: as many as GPUs
  JobSpec several = all;
  several.placement.gpus_per_rank = 4;
  CHECK(idle_gpus("a:1,b:1", {0, 4}, several) == "");
}

TEST_CASE("--map-by gpu starts a rank for each GPU whatever number of tasks Slurm has") {
  JobSpec spec = launch_spec(std::nullopt);
  spec.placement.map_by.by = MapBy::kGpu;
  HostList list = parse_host_expression("a:1,b:1");
  list.scheduler = "Slurm";
  list.scheduler_gpus = {0, 4};
  const LaunchPlan plan = make_plan(spec, list, {host(4, 8), host(4, 8)});
  CHECK(plan.ranks.size() == 8);
  CHECK(plan.warnings.empty());
}
