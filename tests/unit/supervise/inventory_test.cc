// Tests of how hvrun asks hosts for inventories, sends the program for it, and handles failures.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "hvrun_version.h"
#include "tests/unit/supervise/supervised.h"

using namespace hv::launcher;
namespace wire = hv::wire;

namespace {

// A host with two GPUs without UUIDs in /proc. Records its requests.
struct GpuHost : FakeAgent {
  void on_start() override {
    wire::Hello hello;
    hello.build = HVRUN_BUILD_ID;
    hello.facts.machine = machine;
    hello.facts.addresses = {"10.0.0.1"};
    hello.facts.gpus = {{"p0", "A100", "", 0}, {"p1", "A100", "", 1}};
    send(hello);
  }
  GpuHost() {
    on_inventory = [this](const hv::Frame& frame) {
      REQUIRE(hv::decode(frame.payload, &requests.emplace_back()));
      answer(requests.back());
    };
  }
  void answer(const wire::InventoryRequest& request) {
    wire::InventoryReply reply;
    reply.is_missing = request.program.empty() && is_missing;
    reply.problem = problem;
    if (!reply.is_missing && problem.empty()) reply.inventory = {"", "550", two_gpus()};
    send(reply);
  }
  static std::vector<wire::InventoryGpu> two_gpus() {
    std::vector<wire::InventoryGpu> gpus(2);
    for (std::size_t i = 0; i < 2; ++i) {
      gpus[i].pci_address = "p" + std::to_string(i);
      gpus[i].uuid = "GPU-" + std::to_string(i);
    }
    return gpus;
  }
  std::string visible(std::size_t rank) const {
    for (const auto& [name, value] : launch.ranks.at(rank).environment)
      if (name == "CUDA_VISIBLE_DEVICES") return value;
    return "not set";
  }

  std::vector<wire::InventoryRequest> requests;
  std::string machine = own_machine();
  std::string problem;
  bool is_missing = false;

 private:
  static std::string own_machine() {
#if defined(__x86_64__)
    return "x86_64";
#elif defined(__aarch64__)
    return "aarch64";
#else
    return "";
#endif
  }
};

JobSpec own_gpus() {
  JobSpec spec;
  spec.placement.sees_only_its_gpus = true;
  return spec;
}

}  // namespace

TEST_CASE("a host whose facts suffice is not asked") {
  GpuHost a;
  CHECK(supervise({{"a", &a}}, "a").code == 0);
  CHECK(a.requests.empty());
  CHECK(a.visible(0) == "not set");
}

TEST_CASE("without a time limit for it no host is asked") {
  GpuHost a;
  JobSpec spec = own_gpus();
  spec.access.inventory_timeout = {};
  const Outcome outcome = supervise({{"a", &a}}, "a", spec);
  CHECK(outcome.err == "");
  CHECK(a.requests.empty());
  CHECK(a.visible(1) == "1");
}

TEST_CASE("only a host without UUIDs is asked, and reports them") {
  GpuHost a;
  FakeAgent b;
  JobSpec spec = own_gpus();
  spec.access.inventory_timeout = std::chrono::seconds(7);
  CHECK(supervise({{"a", &a}, {"b", &b}}, "a,b:1", spec).code == 0);
  REQUIRE(a.requests.size() == 1);
  CHECK(a.requests[0].timeout_s == 7);
  CHECK(a.requests[0].program.empty());
  CHECK(a.visible(1) == "GPU-1");
}

TEST_CASE("a host that reports that it lacks the program gets it") {
  GpuHost a;
  a.is_missing = true;
  const Outcome outcome = supervise({{"a", &a}}, "a", own_gpus());
  CHECK(outcome.err == "");
  REQUIRE(a.requests.size() == 2);
  CHECK(a.requests[1].program.substr(0, 4) ==
        "\x7f"
        "ELF");
  CHECK(a.visible(0) == "GPU-0");
}

TEST_CASE("a host of another architecture gets no program that it cannot run") {
  GpuHost a;
  a.is_missing = true;
  a.machine = "riscv128";
  const Outcome outcome = supervise({{"a", &a}}, "a", own_gpus());
  CHECK(outcome.code == 0);
  CHECK(a.requests.size() == 1);
  CHECK(contains(outcome.err,
                 "warning: host a: the driver could not be asked for its GPUs "
                 "(hvrun-inventory is neither there nor"));
  CHECK(a.visible(1) == "1");
}

TEST_CASE("a failure there is a warning, and the plan uses /proc") {
  GpuHost a;
  a.problem = "hvrun-inventory did not answer\nwithin 20 s";
  const Outcome outcome = supervise({{"a", &a}}, "a", own_gpus());
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.err, "did not answer\\x0awithin 20 s), so the plan goes by what /proc"));
  CHECK(a.visible(0) == "0");
}

TEST_CASE("an agent that is lost while it is asked is an error") {
  GpuHost a;
  a.on_inventory = [&a](const hv::Frame&) { a.vanish(); };
  const Outcome outcome = supervise({{"a", &a}}, "a", own_gpus());
  CHECK(outcome.code == 5);
  CHECK(contains(outcome.err, "ask the drivers of GPUs: the connection to its agent broke"));
}
