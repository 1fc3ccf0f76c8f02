// Tests of launcher/supervise/launch_message.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/launch_message.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>

using namespace hv::launcher;
namespace wire = hv::wire;

namespace {

// A job with one host, just before Launch is sent.
struct SetUpJob {
  explicit SetUpJob(int ranks, JobSpec spec = {}) : job(io.get_executor(), std::move(spec)) {
    HostTarget target;
    target.name = "a";
    Host& host = job.add_host(target);
    host.answers.greeting.emplace();
    host.answers.set_up.emplace().agent_socket = "@fake";
    plan.hosts.emplace_back();
    for (int rank = 0; rank < ranks; ++rank) plan.ranks.emplace_back().identity.rank = rank;
    job.begin_epoch(plan);
  }
  // Replaces the plan.
  void place(PlannedRank rank) {
    plan.ranks.at(static_cast<std::size_t>(rank.identity.rank)) = std::move(rank);
    job.begin_epoch(plan);
  }
  wire::Launch message(const CommonEnvironment& environment = {}) const {
    return launch_message(job, job.members().front(), {"127.0.0.1", 29500, 0}, environment);
  }

  // The values that rank 0 gets for the name.
  std::vector<std::string> values(const char* name, const wire::Pairs& defaults,
                                  const CommonEnvironment& environment = {}) const {
    std::vector<std::string> found;
    const wire::Launch launch =
        launch_message(job, job.members().front(), {"127.0.0.1", 29500, 0}, environment, defaults);
    for (const auto& [key, value] : launch.ranks.at(0).environment)
      if (key == name) found.push_back(value);
    return found;
  }

  auto& gpus() { return job.members().front().answers.greeting->hello.facts.gpus; }

  boost::asio::io_context io;
  Job job;
  LaunchPlan plan;
};

// With so much in every rank's environment the message has exactly this many bytes.
CommonEnvironment filling(const SetUpJob& job, std::size_t bytes) {
  const std::size_t length_field = 4;
  const std::string name = "X";
  CommonEnvironment environment;
  environment.variables.set(
      name,
      std::string(bytes - hv::encode(job.message()).size() - length_field - name.size() - 1, 'x'));
  return environment;
}

std::vector<std::string> device_orders(const wire::Launch& launch) {
  std::vector<std::string> found;
  std::copy_if(launch.environment.begin(), launch.environment.end(), std::back_inserter(found),
               [](const std::string& entry) { return entry.rfind("CUDA_DEVICE_ORDER=", 0) == 0; });
  return found;
}

}  // namespace

TEST_CASE("the placement, hvrun's environment and -x override default variables of a host") {
  SetUpJob job(1);
  const wire::Pairs defaults{{"GLOO_SOCKET_IFNAME", "eth0"}};
  using Values = std::vector<std::string>;
  CHECK(job.values("GLOO_SOCKET_IFNAME", defaults) == Values{"eth0"});
  CommonEnvironment environment;
  environment.variables.set("GLOO_SOCKET_IFNAME", "lo");
  CHECK(job.values("GLOO_SOCKET_IFNAME", defaults, environment).empty());
  PlannedRank placed;
  placed.variables.emplace_back("GLOO_SOCKET_IFNAME", "eth1");
  job.place(placed);
  CHECK(job.values("GLOO_SOCKET_IFNAME", defaults).back() == "eth1");
}

TEST_CASE(
    "a message as large as an agent takes is made, a byte more is an error with its numbers") {
  const SetUpJob job(3);
  const wire::Launch most = job.message(filling(job, wire::kMaxAgentPayload));
  CHECK(hv::encode(most).size() == wire::kMaxAgentPayload);
  try {
    job.message(filling(job, wire::kMaxAgentPayload + 1));
    FAIL("it was made");
  } catch (const hv::Error& error) {
    const std::string text = error.what();
    CAPTURE(text);
    CHECK(error.kind() == hv::ErrorKind::kUsage);
    CHECK(text.find("3 ranks on host a") != std::string::npos);
    CHECK(text.find("about 65 MiB") != std::string::npos);
    CHECK(text.find("at most 64 MiB") != std::string::npos);
    CHECK(error.hint().find("-np") != std::string::npos);
  }
}

TEST_CASE("the devices are in the order of the bus on a host with GPUs, unless -x says otherwise") {
  SetUpJob job(1);
  CHECK(device_orders(job.message()).empty());
  job.gpus().resize(2);
  using Orders = std::vector<std::string>;
  CHECK(device_orders(job.message()) == Orders{"CUDA_DEVICE_ORDER=PCI_BUS_ID"});
  JobSpec spec;
  spec.environment.exports = parse_exports({"CUDA_DEVICE_ORDER=FASTEST_FIRST"});
  CHECK(device_orders(job.message(common_environment(spec, {}))) ==
        Orders{"CUDA_DEVICE_ORDER=FASTEST_FIRST"});
}

TEST_CASE("hvrun's own CUDA_DEVICE_ORDER counts only where -x names it") {
  SetUpJob job(1);
  job.gpus().resize(2);
  hv::Environment own;
  own.set("CUDA_DEVICE_ORDER", "FASTEST_FIRST");
  JobSpec spec;
  CHECK(device_orders(job.message(common_environment(spec, own))).back() ==
        "CUDA_DEVICE_ORDER=PCI_BUS_ID");
  spec.environment.exports = parse_exports({"CUDA_*"});
  CHECK(device_orders(job.message(common_environment(spec, own))).back() ==
        "CUDA_DEVICE_ORDER=FASTEST_FIRST");
}

TEST_CASE("rank 0 gets a result pipe where results are asked for, no other rank does") {
  JobSpec spec;
  CHECK_FALSE(SetUpJob(1).message().ranks[0].has_result_pipe);
  spec.output.result_fd = 5;
  const wire::Launch launch = SetUpJob(2, spec).message();
  CHECK(launch.ranks[0].has_result_pipe);
  CHECK_FALSE(launch.ranks[1].has_result_pipe);
}

TEST_CASE(
    "ranks get their program, their cores, and the placement's variables that the user did not "
    "set") {
  JobSpec spec;
  spec.programs = {{{"serve"}, "/s", 1, {}}, {{"train"}, "/t", 1, parse_exports({"C=3"})}};
  spec.environment.exports = parse_exports({"A=1"});
  SetUpJob job(2, spec);
  PlannedRank rank;
  rank.identity.rank = 1;
  rank.program = 1;
  rank.cores = {2, 3};
  rank.variables = {{"A", "0"}, {"B", "0"}, {"C", "0"}, {"D", "0"}};
  job.place(rank);
  hv::Environment own;
  own.set("B", "2");
  const wire::Launch launch = job.message(common_environment(spec, own));
  REQUIRE(launch.programs.size() == 2);
  CHECK(launch.programs[1].argv == std::vector<std::string>{"train"});
  CHECK(launch.programs[1].directory == "/t");
  CHECK(launch.programs[1].environment == std::vector<std::string>{"C=3"});
  CHECK(launch.ranks[0].program == 0);
  CHECK(launch.ranks[0].cores.empty());
  CHECK(launch.ranks[1].program == 1);
  CHECK(launch.ranks[1].cores == std::vector<std::uint32_t>{2, 3});
  const auto has = [&](const std::string& name) {
    return std::any_of(launch.ranks[1].environment.begin(), launch.ranks[1].environment.end(),
                       [&name](const auto& entry) { return entry.first == name; });
  };
  CHECK_FALSE(has("A"));
  CHECK_FALSE(has("B"));
  CHECK_FALSE(has("C"));
  CHECK(has("D"));
}
