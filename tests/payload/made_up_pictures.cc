// made_up_pictures FOLDER: pages and pictures of hosts that nobody has, for tests with a browser.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <fstream>
#include <string>

#include "launcher/picture/report_html.h"
#include "tests/unit/check/made_up_topology.h"

namespace hv::launcher {
namespace {

using made_up::check_of;
using made_up::Links;

constexpr const char* kHostile = "<script>alert('1')</script>\"&]]>\x1b[31m\xff\xef\xbf\xbe\u4e3b";

CheckReport report_with(const CheckInput& input, const std::string& words) {
  CheckReport report;
  report.findings = {
      {"clock", "clock-skew", Severity::kHarms, {input.hosts[0].name}, words, words, words},
      {"reach", "no-answer", Severity::kCannotStart, {input.hosts.back().name}, words, words, ""}};
  report.not_probed = {{"limits", {input.hosts[0].name}, words}};
  return report;
}

// What a host says of itself, or a user calls it.
CheckInput hostile() {
  CheckInput input = check_of("n[1-3]:4", {.links = Links::kPairs});
  made_up::add_pairs(&input);
  for (CheckedHost& host : input.hosts) {
    host.name += kHostile;
    host.facts->rdma[0].name = kHostile;
    host.inventory->inventory.topology.caches = {kHostile};
    for (wire::Gpu& gpu : host.facts->gpus) gpu.model = kHostile;
  }
  for (PairFacts& pair : input.pairs) pair.address = kHostile;
  input.spec.programs[0].argv = {kHostile};
  input.pairs.push_back({2, 0, {"10.0.0.1"}, {}, kHostile});
  input.hosts[2].failure = Error(ErrorKind::kStart, kHostile);
  return input;
}

CheckInput small() {
  return check_of("vm:2", {.nodes = 1, .cores = 4, .gpus = 0, .memory_bytes = 8243000000});
}

CheckInput with_pairs(CheckInput input) {
  made_up::add_pairs(&input);
  return input;
}

CheckInput cut_up() {
  CheckInput input = check_of("n1:4", {.cores = 24, .links = Links::kNone});
  wire::InventoryGpu& gpu = input.hosts[0].inventory->inventory.gpus[1];
  gpu.has_mig_mode = true;
  gpu.mig = {{"MIG-1", "1g", 1, 0}, {"MIG-2", "1g", 2, 0}};
  input.hosts[0].inventory->inventory.gpus[3].health.is_lost = true;
  return input;
}

CheckInput bound_to_cores() {
  JobSpec spec;
  spec.placement.bind_to = BindTo::kCore;
  return with_pairs(check_of("cpu[1-4]:20", {.cores = 32, .gpus = 0}, spec));
}

CheckInput unbound() {
  JobSpec spec;
  spec.placement.bind_to = BindTo::kNone;
  return check_of("node:6", {.nodes = 1, .cores = 2, .gpus = 0}, spec);
}

bool write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  return file.good();
}

bool write_both(const std::string& folder, const std::string& name, const CheckInput& input,
                const CheckReport& report) {
  return write(folder + "/" + name + ".html", report_as_html(input, report)) &&
         write(folder + "/" + name + ".svg", report_as_svg(input));
}

bool write_all(const std::string& folder) {
  const CheckInput attacked = hostile();
  bool is_done = write_both(folder, "hostile", attacked, report_with(attacked, kHostile));
  const CheckInput eight = with_pairs(check_of("n[1-8]:4"));
  is_done =
      write_both(folder, "eight", eight, report_with(eight, "clocks differ by 4 s")) && is_done;
  const std::pair<const char*, CheckInput> healthy[] = {
      {"small", small()},
      {"cut_up", cut_up()},
      {"pairs", with_pairs(check_of("a:8,b:8", {.cores = 48, .gpus = 4, .links = Links::kPairs}))},
      {"cores", bound_to_cores()},
      {"unbound", unbound()},
      {"many", with_pairs(check_of("node[001-064]:8", {.cores = 64, .gpus = 4}))}};
  for (const auto& [name, input] : healthy)
    is_done = write_both(folder, name, input, CheckReport{}) && is_done;
  return is_done;
}

}  // namespace
}  // namespace hv::launcher

int main(int argc, char** argv) {
  if (argc == 2 && hv::launcher::write_all(argv[1])) return 0;
  std::fprintf(stderr, "made_up_pictures: usage: made_up_pictures FOLDER, which can be written\n");
  return 1;
}
