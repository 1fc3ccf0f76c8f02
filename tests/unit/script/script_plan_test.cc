// Tests of the layout of a job on a site's nodes, and of every limit.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/script/script_plan.h"

#include <doctest/doctest.h>

#include "src/base/error.h"

using namespace hv::launcher;
using namespace std::chrono_literals;

namespace {

// Four GPUs and 40 cores a node; a partition without GPUs; one of which nothing is known.
Site planned_lab() {
  Site site;
  site.name = "lab";
  site.default_time = 10min;
  Qos normal{"normal", 20h, 16, 32, 640};
  Qos longer{"longer", 100h, 4, 0, 0};
  Qos other{"other", {}, 0, 0, 0};
  site.qos = {normal, longer, other};
  Partition gpu;
  gpu.name = "gpu";
  gpu.cores = 40;
  gpu.gpus = 4;
  gpu.qos = {"normal", "longer"};
  gpu.max_nodes = 20;
  gpu.max_time = 50h;
  gpu.account_suffix = "@gpu";
  Partition cpu;
  cpu.name = "cpu";
  cpu.cores = 40;
  cpu.gpus = 0;
  Partition any;
  any.name = "any";
  site.partitions = {gpu, cpu, any};
  return site;
}

struct Layout {
  int ranks, nodes, on_node, cores, gpus;
  bool operator==(const Layout&) const = default;
};

doctest::String toString(const Layout& it) {
  return (std::to_string(it.ranks) + " ranks, " + std::to_string(it.nodes) + " nodes, " +
          std::to_string(it.on_node) + " on each, " + std::to_string(it.cores) + " cores, " +
          std::to_string(it.gpus) + " GPUs")
      .c_str();
}

Layout layout_of(const JobRequest& request, const Site& site = planned_lab()) {
  const ScriptPlan plan = plan_script(request, site);
  return {plan.ranks, plan.nodes, plan.ranks_per_node, plan.cores_per_rank, plan.gpus_per_node()};
}

std::string error_of(const JobRequest& request, const Site& site = planned_lab()) {
  try {
    plan_script(request, site);
  } catch (const hv::Error& error) {
    CHECK(error.kind() == hv::ErrorKind::kUsage);
    return std::string(error.what()) + " | " + error.hint();
  }
  return "no error";
}

JobRequest ranks(int number) {
  JobRequest request;
  request.ranks = number;
  return request;
}

JobRequest of_nodes(int nodes, std::optional<int> on_node = {}, std::optional<int> number = {}) {
  JobRequest request;
  request.nodes = nodes;
  request.ranks_per_node = on_node;
  request.ranks = number;
  return request;
}

JobRequest on(const std::string& partition, JobRequest request) {
  request.partition = partition;
  return request;
}

JobRequest with_gpus(int gpus, JobRequest request) {
  request.gpus_per_rank = gpus;
  return request;
}

struct Case {
  void (*change)(JobRequest&, Site&);
  const char* words;
};

template <std::size_t count>
void check_all(const Case (&cases)[count]) {
  for (const Case& each : cases) {
    CAPTURE(each.words);
    JobRequest request = ranks(4);
    Site site = planned_lab();
    each.change(request, site);
    CHECK_MESSAGE(error_of(request, site).find(each.words) != std::string::npos,
                  error_of(request, site));
  }
}

}  // namespace

TEST_CASE("ranks are spread evenly over the fewest nodes that hold them") {
  CHECK(layout_of(ranks(32)) == Layout{32, 8, 4, 10, 4});
  CHECK(layout_of(ranks(6)) == Layout{6, 2, 3, 10, 3});
  CHECK(layout_of(ranks(5)) == Layout{5, 2, 3, 10, 3});
  CHECK(layout_of(ranks(1)) == Layout{1, 1, 1, 10, 1});
  CHECK(layout_of(of_nodes(3)) == Layout{12, 3, 4, 10, 4});
  CHECK(layout_of(of_nodes(3, 2)) == Layout{6, 3, 2, 10, 2});
  CHECK(layout_of(of_nodes(3, {}, 5)) == Layout{5, 3, 2, 10, 2});
  CHECK(layout_of(of_nodes(2, 4, 7)) == Layout{7, 2, 4, 10, 4});
  CHECK(plan_script(ranks(5), planned_lab()).is_uneven());
  CHECK(!plan_script(ranks(6), planned_lab()).is_uneven());
}

TEST_CASE("a rank's cores go with its GPUs, or are one where there are none") {
  CHECK(layout_of(with_gpus(2, ranks(4))) == Layout{4, 2, 2, 20, 4});
  CHECK(layout_of(with_gpus(0, ranks(80))) == Layout{80, 2, 40, 1, 0});
  CHECK(layout_of(on("cpu", ranks(60))) == Layout{60, 2, 30, 1, 0});
  CHECK(layout_of(on("cpu", of_nodes(2, 4))) == Layout{8, 2, 4, 10, 0});
  JobRequest threaded = on("cpu", ranks(8));
  threaded.cores_per_rank = 20;
  CHECK(layout_of(threaded) == Layout{8, 4, 2, 20, 0});
  Site exclusive = planned_lab();
  exclusive.partitions[0].is_exclusive = true;
  CHECK(layout_of(ranks(2), exclusive) == Layout{2, 1, 2, 20, 2});
}

TEST_CASE("what is unknown is left to the scheduler") {
  CHECK(layout_of(on("any", ranks(7))) == Layout{7, 0, 0, 0, 0});
  CHECK(layout_of(on("any", of_nodes(3, {}, 7))) == Layout{7, 3, 3, 0, 0});
  CHECK(layout_of(on("any", with_gpus(1, of_nodes(2, 4)))) == Layout{8, 2, 4, 0, 4});
  CHECK(error_of(on("any", with_gpus(1, ranks(7)))).find("--gpus-per-rank: nothing says") == 0);
  CHECK(error_of(on("any", of_nodes(3))).find("how many ranks the job has") != std::string::npos);
  CHECK(error_of({}).find("how many nodes the job has") != std::string::npos);
}

TEST_CASE("numbers that contradict each other are refused") {
  CHECK(error_of(of_nodes(2, 4, 9)) ==
        "--nodes 2 with 4 ranks on each has no room for -np 9 | leave one of -np, --nodes and "
        "--ranks-per-node out");
  CHECK(error_of(of_nodes(3, 4, 8)) ==
        "-np 8 leaves some of --nodes 3 without a rank | --nodes 2, or leave --nodes out");
  CHECK(error_of(on("any", of_nodes(65536, 65536))).find("would have 4294967296 ranks") !=
        std::string::npos);
}

TEST_CASE("account, quality of service and time follow the partition") {
  JobRequest request = ranks(4);
  request.account = "abc";
  ScriptPlan plan = plan_script(request, planned_lab());
  CHECK(plan.account == "abc@gpu");
  CHECK(plan.qos == "normal");
  CHECK(plan.time == 10min);
  request.account = "abc@gpu";
  request.time = 2h;
  plan = plan_script(request, planned_lab());
  CHECK(plan.account == "abc@gpu");
  CHECK(plan.time == 2h);
}

TEST_CASE("limits of a node and of the job are named with their numbers and what to ask for") {
  const Case cases[] = {
      {[](JobRequest& it, Site&) { it.ranks_per_node = 8; },
       "8 ranks on a node take 8 GPUs (1 each), and a node has 4 | --ranks-per-node 4"},
      {[](JobRequest& it, Site&) { it.gpus_per_rank = 8; },
       "1 rank on a node takes 8 GPUs (8 each), and a node has 4 | --gpus-per-rank 4"},
      {[](JobRequest& it, Site&) { it.cores_per_rank = 11; },
       "4 ranks on a node take 44 cores (11 each), and a node has 40 | --ranks-per-node 3"},
      {[](JobRequest& it, Site&) {
         it = of_nodes(1, 1);
         it.cores_per_rank = 41;
       },
       "and a node has 40 | --cores-per-rank 40"},
      {[](JobRequest& it, Site& site) {
         it = of_nodes(21);
         site.qos.clear();
       },
       "21 nodes are more than the 20 of the partition | --nodes 20"},
      {[](JobRequest& it, Site&) {
         it.time = 51h;
         it.qos = "longer";
       },
       "--time 51:00:00 is more than the 50:00:00 of the partition | --time 50:00:00"},
      {[](JobRequest& it, Site&) { it.time = 21h; },
       "--time 21:00:00 is more than the 20:00:00 of normal | --qos longer"},
      {[](JobRequest& it, Site&) {
         it.time = 21h;
         it.ranks = 20;
       },
       "--time 21:00:00 is more than the 20:00:00 of normal | --time 20:00:00"},
      {[](JobRequest& it, Site&) {
         it.qos = "longer";
         it.ranks = 17;
       },
       "5 nodes are more than the 4 of longer | --qos normal"},
      {[](JobRequest& it, Site& site) {
         it.ranks = 33;
         site.qos[0].max_cores = 0;
       },
       "36 GPUs (9 nodes of 4 ranks, for 33) are more than the 32 of normal | -np 32"},
      {[](JobRequest& it, Site&) {
         it = of_nodes(17, 1);
         it.cores_per_rank = 40;
       },
       "17 nodes are more than the 16 of normal; 680 cores are more than the 640 of normal | "
       "--nodes 16; -np 16"},
  };
  check_all(cases);
}

TEST_CASE(
    "who pays, for what quality and how signalled are judged, and all broken limits at once") {
  const Case cases[] = {
      {[](JobRequest& it, Site&) { it.qos = "nromal"; },
       "--qos nromal is not one of this partition | --qos normal or longer"},
      {[](JobRequest& it, Site&) { it.account = "abc@cpu"; },
       "--account abc@cpu is not of this partition's form | --account abc@gpu"},
      {[](JobRequest&, Site& site) { site.needs_account = true; },
       "a job needs an account | --account NAME@gpu"},
      {[](JobRequest& it, Site&) {
         it.signal = EarlySignal{"USR1", 10min};
       },
       "--signal comes 00:10:00 before the end of a job of 00:10:00 | a longer --time"},
      {[](JobRequest& it, Site& site) {
         it.requeues = 1;
         site.default_time.reset();
         site.scheduler = BatchScheduler::kPbs;
       },
       "--signal and --requeue go by the time limit, which nothing states | --time 2h"},
      {[](JobRequest& it, Site& site) {
         it.qos = "normal";
         site.scheduler = BatchScheduler::kLsf;
       },
       "--qos is Slurm's, and lsf has queues | --partition NAME"},
      {[](JobRequest& it, Site&) {
         it.time = 51h;
         it.ranks_per_node = 5;
         it.account = "a@b";
       },
       "5 ranks on a node take 5 GPUs (1 each), and a node has 4; --time 51:00:00 is more than the "
       "50:00:00 of the partition; --time 51:00:00 is more than the 20:00:00 of normal; --account "
       "a@b is not of this partition's form | --ranks-per-node 4; --time 50:00:00; --qos longer; "
       "--account a@gpu"},
  };
  check_all(cases);
}

TEST_CASE("a partition that the site does not know is its mistake or the scheduler's to judge") {
  CHECK(error_of(on("gpo", ranks(1))) ==
        "site lab has no partition gpo | gpu? One of gpu, cpu, any");
  Site site = planned_lab();
  site.takes_any_partition = true;
  const ScriptPlan plan = plan_script(on("gpo", ranks(1)), site);
  CHECK(plan.partition.queue == "gpo");
}
