// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "launcher/agent/own_gpu_use.h"

using namespace hv;
using launcher::leave_out;

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

}  // namespace

TEST_CASE("what the job's own ranks use of a GPU is not what others use") {
  const wire::GpuUse both{20 * kGiB, 97, {{7, 12 * kGiB, "python3"}, {8, 3 * kGiB, "other"}}};
  wire::Inventory inventory = with_use(both);
  leave_out({7, 9}, &inventory);
  for (const wire::GpuUse& use : {inventory.gpus[0].use, inventory.gpus[0].mig[0].use}) {
    REQUIRE(use.processes.size() == 1);
    CHECK(use.processes[0].name == "other");
    CHECK(use.used_bytes == 8 * kGiB);
    CHECK_FALSE(use.busy_percent);
  }
}

TEST_CASE("where others compute alone everything stays, where the own memory is not told nothing") {
  const wire::GpuUse others{20 * kGiB, 97, {{8, 3 * kGiB, "other"}}};
  wire::Inventory inventory = with_use(others);
  leave_out({7}, &inventory);
  CHECK(inventory.gpus[0].use.used_bytes == 20 * kGiB);
  CHECK(inventory.gpus[0].use.busy_percent == 97u);
  CHECK(inventory.gpus[0].use.processes.size() == 1);
  inventory = with_use({20 * kGiB, 97, {{7, 0, ""}}});
  leave_out({7}, &inventory);
  CHECK_FALSE(inventory.gpus[0].use.used_bytes);
  inventory = with_use({2 * kGiB, 97, {{7, 3 * kGiB, ""}}});
  leave_out({7}, &inventory);
  CHECK(inventory.gpus[0].use.used_bytes == 0u);
}

TEST_CASE("a child is a descendant, this process is not") {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  wire::Inventory inventory = with_use({kGiB,
                                        0,
                                        {{static_cast<std::uint32_t>(child), 1, "rank"},
                                         {static_cast<std::uint32_t>(::getpid()), 1, "agent"}}});
  launcher::leave_out_descendants(&inventory);
  REQUIRE(inventory.gpus[0].use.processes.size() == 1);
  CHECK(inventory.gpus[0].use.processes[0].name == "agent");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}
