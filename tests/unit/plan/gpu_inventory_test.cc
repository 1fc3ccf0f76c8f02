// Tests of plans that know what the driver tells of a host's GPUs: MIG devices, faults, islands, an
// inherited CUDA_VISIBLE_DEVICES, and when that has to be asked.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/gpu_inventory.h"

#include <doctest/doctest.h>

#include "launcher/allocation/host_expression.h"
#include "launcher/allocation/rankfile.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/plan/plan_text.h"
#include "launcher/plan/rank_resources.h"
#include "src/base/error.h"
#include "src/base/text.h"

using namespace hv;
using namespace hv::launcher;

namespace {

// Four GPUs, "p0" to "p3", of which /proc tells no UUID; the driver calls them GPU-0 to GPU-3. 2 is
// cut in two.
wire::Facts four_gpus() {
  wire::Facts told;
  told.usable_cores = 8;
  for (std::uint32_t i = 0; i < 4; ++i)
    told.gpus.push_back({"p" + std::to_string(i), "A100", "", i, 0, "", i == 2});
  return told;
}

wire::Inventory inventory() {
  wire::Inventory told;
  for (int i = 0; i < 4; ++i) {
    wire::InventoryGpu gpu;
    gpu.pci_address = "p" + std::to_string(i);
    gpu.uuid = "GPU-" + std::to_string(i);
    if (i == 2) {
      gpu.has_mig_mode = true;
      gpu.mig = {{"MIG-a", "1g", 7, 0, 10}, {"MIG-b", "1g", 8, 0, 10}};
    }
    told.gpus.push_back(gpu);
  }
  return told;
}

std::string names(const std::vector<GpuFacts>& gpus) {
  std::vector<std::string> words;
  for (const GpuFacts& gpu : gpus) words.push_back(gpu.cuda_name);
  return join(words, " ");
}

JobSpec spec_of(std::optional<int> ranks = std::nullopt) {
  JobSpec spec;
  spec.programs = {{{"train"}}};
  spec.ranks = ranks;
  return spec;
}

LaunchPlan plan_of(const HostList& list, const wire::Inventory* more, const JobSpec& spec,
                   const wire::Facts& told = four_gpus()) {
  return make_plan(spec, list, {host_facts(told, more)});
}

LaunchPlan plan_of(const std::string& hosts, const JobSpec& spec = spec_of()) {
  const wire::Inventory more = inventory();
  return plan_of(parse_host_expression(hosts), &more, spec);
}

std::string visible(const PlannedRank& rank) {
  for (const auto& [known, value] : rank.variables)
    if (known == "CUDA_VISIBLE_DEVICES") return value;
  return "not set";
}

std::string refusal(const HostList& list, const wire::Inventory& more, const JobSpec& spec) {
  try {
    (void)plan_of(list, &more, spec);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

bool has_part(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("UUIDs are filled in, and a GPU in MIG mode is replaced by its devices") {
  const wire::Inventory more = inventory();
  CHECK(names(gpus_of(four_gpus(), &more).gpus) == "GPU-0 GPU-1 MIG-a MIG-b GPU-3");
  CHECK(gpu_numbers(gpus_of(four_gpus(), &more).gpus) == std::vector{0, 1, 2, 2, 3});
  CHECK(names(gpus_of(four_gpus(), nullptr).gpus) == "0 1 2 3");
  wire::Inventory without = more;
  without.gpus[2].mig[0].may_open = false;  // a scheduler's cgroup
  CHECK(names(gpus_of(four_gpus(), &without).gpus) == "GPU-0 GPU-1 MIG-b GPU-3");
}

TEST_CASE("a GPU whose node does not open does not count, though the driver lists it") {
  wire::Facts told = four_gpus();
  told.gpus.erase(told.gpus.begin());
  const wire::Inventory more = inventory();
  CHECK(names(gpus_of(told, &more).gpus) == "GPU-1 MIG-a MIG-b GPU-3");
}

TEST_CASE("what an inventory names oddly stays out of the ranks' variables") {
  wire::Inventory more = inventory();
  more.gpus[0].uuid = "GPU 0,1";
  more.gpus[2].mig[0].uuid = "MIG-\n";
  CHECK(names(gpus_of(four_gpus(), &more).gpus) == "0 GPU-1 MIG-b GPU-3");
}

TEST_CASE("hwloc's node counts where /sys tells none") {
  wire::Facts told = four_gpus();
  told.gpus[1].node = wire::kNoNode;
  wire::Inventory more = inventory();
  more.gpus[0].node = more.gpus[1].node = 1;
  const auto gpus = gpus_of(told, &more).gpus;
  CHECK(gpus[0].node == std::optional(0));
  CHECK(gpus[1].node == std::optional(1));
}

TEST_CASE("an inherited CUDA_VISIBLE_DEVICES names GPUs, parts of them, and MIG devices") {
  const std::pair<const char*, const char*> cases[] = {
      {"3,0", "GPU-3 GPU-0"},
      {"2,1", "MIG-a MIG-b GPU-1"},
      {"GPU-2", "MIG-a MIG-b"},
      {"MIG-b", "MIG-b"},
      {"MIG-GPU-2/8/0, 3", "MIG-b GPU-3"},
      {"MIG-b,MIG-a", "MIG-b MIG-a"},
      {"GPU-3,GPU-9,GPU-1", "GPU-3"},
      {"MIG-", "MIG-a"},
      {"7", ""},
      {"", ""},
  };
  const wire::Inventory more = inventory();
  for (const auto& [value, expected] : cases) {
    CAPTURE(value);
    wire::Facts told = four_gpus();
    told.has_visible_devices = true;
    told.visible_devices = value;
    CHECK(names(gpus_of(told, &more).gpus) == expected);
  }
}

TEST_CASE("an inherited list of indices is ambiguous where models differ and no order is set") {
  wire::Facts told = four_gpus();
  told.has_visible_devices = true;
  told.visible_devices = "1,0";
  CHECK(gpus_of(told, nullptr).warnings.empty());
  told.gpus[3].model = "A30";
  REQUIRE(gpus_of(told, nullptr).warnings.size() == 1);
  CHECK(has_part(gpus_of(told, nullptr).warnings[0], "CUDA_DEVICE_ORDER=PCI_BUS_ID"));
  told.visible_devices = "GPU-1";
  CHECK(gpus_of(told, nullptr).warnings.empty());
  told.visible_devices = "1";
  told.has_pci_order = true;
  CHECK(gpus_of(told, nullptr).warnings.empty());
}

TEST_CASE("each MIG device is a slot, and where there is one each rank sees its own only") {
  const LaunchPlan plan = plan_of("a");
  REQUIRE(plan.ranks.size() == 5);
  const char* const expected[] = {"GPU-0", "GPU-1", "MIG-a", "MIG-b", "GPU-3"};
  for (std::size_t i = 0; i < 5; ++i) CHECK(visible(plan.ranks[i]) == expected[i]);
  CHECK(plan.ranks[3].gpu_names[0].number == 2);
  CHECK(has_part(bindings_as_text(plan), "rank 3 on host a: all cores, GPU 2 (MIG-b)\n"));
  CHECK(visible(plan_of("a:2").ranks[0]) == "not set");  // whole GPUs, as ever
}

TEST_CASE("the plan's text and JSON name a rank's GPU by index and UUID") {
  const LaunchPlan plan = plan_of("a");
  CHECK(has_part(plan_as_text(spec_of(), plan), " 2 (MIG-b)\n"));
  const std::string json = plan_as_json(spec_of(), plan);
  CHECK(has_part(json, "\"gpu\": 3"));
  CHECK(has_part(json, "\"MIG-a\""));
}

TEST_CASE("two GPUs a rank, one of them a MIG device, are an error with the reason") {
  JobSpec spec = spec_of();
  spec.placement.gpus_per_rank = 2;
  HostList list = parse_host_expression("a");
  list.entries[0].gpus = {"2"};
  const std::string words = refusal(list, inventory(), spec);
  CHECK(has_part(words, "rank 0 on host a would have 2 GPUs, and one is the MIG device MIG-a"));
  CHECK(has_part(words, "a CUDA program sees one MIG device"));
  const HostList placed = add_rankfile({{}, true}, "rank 0=a gpus=2", "ranks");
  CHECK(has_part(refusal(placed, inventory(), spec_of()), "the MIG device MIG-a"));
}

TEST_CASE("a GPU that is cut up is named by its index, its UUID, or its devices' own") {
  HostList list = parse_host_expression("a");
  const wire::Inventory more = inventory();
  const auto seen = [&](std::vector<std::string> gpus) {
    list.entries[0].gpus = std::move(gpus);
    std::vector<std::string> words;
    for (const PlannedRank& rank : plan_of(list, &more, spec_of()).ranks)
      words.push_back(visible(rank));
    return join(words, " ");
  };
  CHECK(seen({"3", "2"}) == "GPU-3 MIG-a MIG-b");
  CHECK(seen({"GPU-2"}) == "MIG-a MIG-b");
  CHECK(seen({"MIG-b"}) == "MIG-b");
  CHECK_THROWS_AS(seen({"2", "MIG-b"}), Error);
  list.entries[0].without_gpus = {2};
  CHECK(seen({}) == "GPU-0,GPU-1,GPU-3 GPU-0,GPU-1,GPU-3 GPU-0,GPU-1,GPU-3");
}

TEST_CASE("a GPU with a fault gets no rank, and a warning says why and what to do") {
  wire::Inventory more = inventory();
  more.gpus[1].health.is_pending = true;
  CHECK(fault_of(more.gpus[1].health) == "");  // the repair can wait
  more.gpus[1].health.volatile_errors = 3;
  const LaunchPlan plan = plan_of(parse_host_expression("a"), &more, spec_of());
  CHECK(plan.ranks.size() == 4);
  CHECK(visible(plan.ranks[1]) == "MIG-a");
  REQUIRE(plan.warnings.size() == 1);
  CHECK(
      plan.warnings[0] ==
      "GPU 1 of host a (p1, GPU-1) gets no rank: 3 uncorrected memory errors (ECC), whose repair "
      "waits for its reset; reset it there once nothing uses it ('nvidia-smi -r -i p1'), or drain "
      "the node");
  HostList named = parse_host_expression("a");
  named.entries[0].gpus = {"1"};
  CHECK(has_part(refusal(named, more, spec_of()),
                 "GPU 1 of host a (p1, GPU-1) can do no work, and is asked for (-H)"));
}

TEST_CASE("where all GPUs of a host have faults it has no slots, and is still warned about") {
  wire::Inventory more = inventory();
  for (wire::InventoryGpu& gpu : more.gpus) gpu.health.is_lost = true;
  const HostFacts faulty = host_facts(four_gpus(), &more), fine = host_facts(four_gpus());
  const LaunchPlan plan = make_plan(spec_of(), parse_host_expression("a,b"), {faulty, fine});
  REQUIRE(plan.hosts.size() == 1);
  CHECK(plan.hosts[0].name == "b");
  CHECK(plan.warnings.size() == 4);  // one for each GPU, however many parts it has
  wire::Facts small = four_gpus();
  small.usable_cores = 1;
  HostList here;
  here.this_machine = true;
  CHECK(plan_of(here, &more, spec_of(), small).ranks.size() == 1);
}

TEST_CASE("hosts that tell the same are warned about together") {
  HostFacts one = host_facts(four_gpus());
  one.warnings = {"no driver"};
  HostFacts other = one;
  other.warnings.push_back("more");
  const LaunchPlan plan = make_plan(spec_of(), parse_host_expression("a,b"), {one, other});
  CHECK(plan.warnings == std::vector<std::string>{"hosts a,b: no driver", "host b: more"});
  const std::vector<std::optional<HostFacts>> ten(10, one);
  CHECK(make_plan(spec_of(), parse_host_expression("n[0-9]"), ten).warnings ==
        std::vector<std::string>{"hosts n[0-9] (10): no driver"});
}

TEST_CASE("a GPU in MIG mode without a device is of no use, and says so") {
  wire::Inventory more = inventory();
  more.gpus[2].mig.clear();
  const LaunchPlan plan = plan_of(parse_host_expression("a"), &more, spec_of());
  CHECK(plan.ranks.size() == 3);
  REQUIRE(plan.warnings.size() == 1);
  CHECK(has_part(plan.warnings[0], "it is in MIG mode"));
  CHECK(has_part(plan.warnings[0], "nvidia-smi mig"));
}

TEST_CASE("every fault that ends a GPU's work has its words") {
  const std::pair<wire::GpuHealth, const char*> cases[] = {
      {{true, false, false, false, 0, 0}, "fallen off the bus"},
      {{false, true, false, false, 0, 0}, "until it is reset"},
      {{false, false, false, true, 0, 0}, "beyond repair"},
      {{false, false, true, false, 2, 2}, "2 uncorrected"},
      {{false, false, false, false, 2, 9}, ""},
      {{false, false, true, false, 0, 9}, ""}};
  for (const auto& [health, part] : cases) {
    CAPTURE(part);
    CHECK(has_part(fault_of(health), part));
    CHECK(fault_of(health).empty() == std::string(part).empty());
  }
}

TEST_CASE("NVLinks make islands, directly or by a switch") {
  std::vector<wire::InventoryGpu> gpus(6);
  for (std::size_t i = 0; i < 6; ++i) gpus[i].pci_address = "p" + std::to_string(i);
  gpus[0].links = {"p2"};
  gpus[2].links = {"p0", "p3"};
  gpus[3].links = {"p2"};
  gpus[1].links = {"s0"};
  gpus[5].links = {"s0", "s1"};
  CHECK(islands_of(gpus) == std::vector{0, 1, 0, 0, -1, 1});
  CHECK(islands_of({}).empty());
}

TEST_CASE("the GPUs of a rank are of one island where that can be") {
  struct Case {
    std::vector<int> islands;  // of each GPU; -1: none
    std::size_t each;
    std::vector<int> chosen, expected;
  };
  const std::vector<int> two{0, 0, 0, 0, 1, 1, 1, 1}, all{0, 1, 2, 3, 4, 5, 6, 7};
  const Case cases[] = {
      {two, 1, all, all},
      {two, 2, all, all},
      {two, 3, all, {0, 1, 2, 4, 5, 6, 3, 7}},
      {two, 2, {0, 4, 1, 5, 2, 6, 3, 7}, {0, 1, 4, 5, 2, 3, 6, 7}},
      {two, 2, {0, 1, 2, 4, 5, 6}, {0, 1, 4, 5, 2, 6}},
      {two, 4, {2, 3, 4, 5, 6, 7}, {4, 5, 6, 7, 2, 3}},
      {two, 8, all, all},
      {{-1, -1, -1, -1}, 2, {0, 1, 2, 3}, {0, 1, 2, 3}},
      {{-1, 0, -1, 0}, 2, {0, 1, 2, 3}, {1, 3, 0, 2}},
      {{0, 1, 0, 1}, 2, {3, 2, 1, 0}, {3, 1, 2, 0}},
      {{}, 2, {}, {}},
  };
  for (const Case& one : cases) {
    std::vector<GpuFacts> gpus(one.islands.size());
    for (std::size_t i = 0; i < gpus.size(); ++i)
      if (one.islands[i] >= 0) gpus[i].island = one.islands[i];
    CAPTURE(one.each);
    CHECK(grouped_by_island(one.chosen, one.each, gpus) == one.expected);
  }
}

TEST_CASE("ranks with several GPUs get them of one island") {
  wire::Facts told = four_gpus();
  wire::Inventory more = inventory();
  more.gpus[2].has_mig_mode = false;
  more.gpus[0].links = more.gpus[2].links = {"s0"};
  more.gpus[1].links = more.gpus[3].links = {"s1"};
  JobSpec spec = spec_of();
  spec.placement.gpus_per_rank = 2;
  spec.placement.sees_only_its_gpus = true;
  const LaunchPlan plan = plan_of(parse_host_expression("a"), &more, spec, told);
  CHECK(visible(plan.ranks[0]) == "GPU-0,GPU-2");
  CHECK(visible(plan.ranks[1]) == "GPU-1,GPU-3");
}

TEST_CASE("the driver is asked only where the plan needs it") {
  const HostList plain = parse_host_expression("a,b");
  HostList by_uuid = plain, by_index = plain;
  by_uuid.entries[1].gpus = {"0", "GPU-1"};
  by_index.entries[1].gpus = {"0"};
  const HostList placed = add_rankfile({{}, true}, "rank 0=a gpus=0\nrank 1=b gpus=GPU-1", "r");
  HostList here;
  here.this_machine = true;
  JobSpec own = spec_of();
  own.placement.sees_only_its_gpus = true;
  wire::Facts told = four_gpus(), named = told, none, inherited, hidden;
  told.gpus[2].has_mig = named.gpus[2].has_mig = false;
  for (wire::Gpu& gpu : named.gpus) gpu.uuid = "GPU-x";
  wire::Facts cut = named;
  cut.gpus[0].has_mig = true;
  inherited = hidden = named;
  inherited.has_visible_devices = hidden.has_visible_devices = true;
  inherited.visible_devices = "0";
  hidden.visible_devices = "-1";
  CHECK_FALSE(needs_inventory(spec_of(), plain, 0, told));
  CHECK(needs_inventory(own, plain, 0, told));
  CHECK(needs_inventory(own, here, 0, told));
  CHECK_FALSE(needs_inventory(own, plain, 0, named));
  CHECK_FALSE(needs_inventory(own, plain, 0, none));
  CHECK(needs_inventory(spec_of(), by_uuid, 1, told));
  CHECK_FALSE(needs_inventory(spec_of(), by_uuid, 0, told));
  CHECK_FALSE(needs_inventory(spec_of(), by_index, 1, told));
  CHECK(needs_inventory(spec_of(), placed, 1, told));
  CHECK_FALSE(needs_inventory(spec_of(), placed, 0, told));
  CHECK(needs_inventory(spec_of(), plain, 0, cut));
  CHECK(needs_inventory(spec_of(), plain, 0, inherited));
  CHECK_FALSE(needs_inventory(spec_of(), plain, 0, hidden));
}
