// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/queries/own_gpu_use.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "launcher/facts/pid_namespace.h"

using namespace hv;
using launcher::leave_to_others;
using launcher::OwnGpuUse;

namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

wire::Inventory with_use(wire::GpuUse use) {
  wire::Inventory inventory;
  inventory.gpus.resize(1);
  inventory.gpus[0].use = use;
  inventory.gpus[0].mig.resize(1);
  inventory.gpus[0].mig[0].use = std::move(use);
  return inventory;
}

std::uint32_t number_of(pid_t pid) { return static_cast<std::uint32_t>(pid); }

}  // namespace

TEST_CASE("GPU use by the job's own ranks is not use by others") {
  wire::Inventory inventory =
      with_use({20 * kGiB, 97, {{7, 12 * kGiB, "python3"}, {8, 3 * kGiB, "other"}, {9, 0, ""}}});
  leave_to_others({7, 10}, &inventory);
  for (const wire::GpuUse& use : {inventory.gpus[0].use, inventory.gpus[0].mig[0].use}) {
    REQUIRE(use.processes.size() == 2);
    CHECK(use.processes[0].name == "other");
    CHECK(use.used_bytes == 3 * kGiB);
    CHECK_FALSE(use.busy_percent);
  }
}

TEST_CASE("GPU memory of a rank that has ended belongs to no process") {
  wire::Inventory inventory = with_use({20 * kGiB, 97, {}});
  leave_to_others({7}, &inventory);
  CHECK_FALSE(inventory.gpus[0].use.used_bytes);
  CHECK_FALSE(inventory.gpus[0].use.busy_percent);
}

TEST_CASE("a process that ends before the driver's answer is read still belongs to the job") {
  if (!launcher::is_in_first_pid_namespace()) {
    wire::Inventory inventory = with_use({kGiB, 9, {{7, 1, "somebody"}}});
    OwnGpuUse().leave_out_of(&inventory);
    CHECK(inventory.gpus[0].use.processes.empty());
    return;
  }
  const auto sleeper = [] {
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::pause();
    ::_exit(0);
  };
  const pid_t early = sleeper();
  REQUIRE(early > 0);
  OwnGpuUse own;
  ::kill(early, SIGKILL);
  ::waitpid(early, nullptr, 0);
  const pid_t late = sleeper();
  REQUIRE(late > 0);
  wire::Inventory inventory = with_use({kGiB,
                                        0,
                                        {{number_of(early), 1, "early"},
                                         {number_of(late), 1, "late"},
                                         {number_of(::getpid()), 1, "agent"}}});
  own.leave_out_of(&inventory);
  REQUIRE(inventory.gpus[0].use.processes.size() == 1);
  CHECK(inventory.gpus[0].use.processes[0].name == "agent");
  ::kill(late, SIGKILL);
  ::waitpid(late, nullptr, 0);
}
