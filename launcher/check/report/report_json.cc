// SPDX-License-Identifier: Apache-2.0
#include "launcher/check/report/report_text.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "launcher/check/report/topology.h"
#include "launcher/plan/plan_text.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

using Json = nlohmann::ordered_json;

// Raised when a member is removed, renamed or changes its meaning; a new member leaves it.
constexpr int kVersion = 2;
constexpr std::size_t kMostJsonBytes = 2000;

Json names(const std::vector<std::string>& hosts) {
  Json list = Json::array();
  for (const std::string& host : hosts) list.push_back(printable(host, kMostJsonBytes));
  return list;
}

std::string word(const std::string& text) { return printable(text, kMostJsonBytes); }

// null: not known.
template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json limit(std::uint64_t value) { return value == wire::kNoLimit ? Json(nullptr) : Json(value); }

Json gpus_as_json(const TopologyHost& host) {
  Json list = Json::array();
  for (const TopologyGpu& gpu : host.gpus)
    list.push_back({{"number", gpu.number},
                    {"model", word(gpu.model)},
                    {"pci_address", word(gpu.pci_address)},
                    {"memory_bytes", gpu.memory_bytes},
                    {"numa_node", or_null(gpu.node)},
                    {"mig_devices", gpu.parts},
                    {"nvswitch_links", gpu.switch_links},
                    {"fault", word(gpu.fault)},
                    {"ranks", gpu.ranks}});
  return list;
}

Json nodes_as_json(const TopologyHost& host) {
  Json list = Json::array();
  for (const TopologyNode& node : host.nodes) {
    Json cores = Json::array();
    for (const TopologyCore& core : node.cores)
      cores.push_back({{"threads", core.threads}, {"ranks", core.ranks}});
    Json gpus = Json::array();
    for (const std::size_t gpu : node.gpus) gpus.push_back(host.gpus.at(gpu).number);
    list.push_back({{"number", or_null(node.number)},
                    {"package", node.package},
                    {"cores", std::move(cores)},
                    {"gpus", std::move(gpus)},
                    {"adapters", names(node.adapters)},
                    {"ranks", node.ranks}});
  }
  return list;
}

Json topology_as_json(const TopologyHost& host) {
  Json links = Json::array();
  for (const GpuLink& link : host.links)
    links.push_back({{"from", host.gpus.at(link.from).number},
                     {"to", host.gpus.at(link.to).number},
                     {"path", path_in_words(link.path)},
                     {"nvlinks", link.nvlinks}});
  return {{"memory_bytes", host.memory_bytes}, {"packages", host.packages},
          {"caches", names(host.caches)},      {"numa_nodes", nodes_as_json(host)},
          {"gpus", gpus_as_json(host)},        {"links", std::move(links)}};
}

Json driver_as_json(const CheckedHost& host) {
  if (!host.inventory || host.inventory->inventory.driver.empty()) return nullptr;
  return {{"version", word(host.inventory->inventory.driver)},
          {"cuda", word(host.inventory->inventory.cuda)}};
}

Json directories_as_json(const wire::CheckReply& reply) {
  Json list = Json::array();
  for (const wire::FolderFacts& folder : reply.folders)
    list.push_back({{"role", word(folder.role)},
                    {"path", word(folder.path)},
                    {"problem", word(folder.problem)},
                    {"device", word(folder.device)},
                    {"file_system", word(folder.kind)},
                    {"free_bytes", limit(folder.free_bytes)},
                    {"free_files", limit(folder.free_files)}});
  return list;
}

Json programs_as_json(const wire::CheckReply& reply) {
  Json list = Json::array();
  for (const wire::ProgramFacts& program : reply.programs) {
    Json pythons = Json::array();
    for (const wire::PythonFacts& python : program.python) {
      Json packages = Json::object();
      for (const auto& [name, version] : python.packages) packages[word(name)] = word(version);
      pythons.push_back({{"executable", word(python.executable)},
                         {"version", word(python.version)},
                         {"prefix", word(python.prefix)},
                         {"packages", std::move(packages)}});
    }
    list.push_back({{"path", word(program.path)},
                    {"problem", word(program.problem)},
                    {"digest", word(program.digest)},
                    {"script", word(program.script)},
                    {"missing_libraries", names(program.missing_libraries)},
                    {"python", std::move(pythons)}});
  }
  return list;
}

Json reported_as_json(const wire::CheckReply& reply) {
  Json interfaces = Json::array();
  for (const wire::InterfaceFacts& one : reply.network.interfaces)
    interfaces.push_back({{"name", word(one.name)},
                          {"addresses", names(one.addresses)},
                          {"mtu", one.mtu},
                          {"megabits", one.megabits},
                          {"is_up", one.is_up}});
  return {{"directories", directories_as_json(reply)},
          {"programs", programs_as_json(reply)},
          {"limits",
           {{"locked_bytes", limit(reply.limits.locked_bytes)},
            {"open_files", limit(reply.limits.open_files)},
            {"stack_bytes", limit(reply.limits.stack_bytes)},
            {"processes", limit(reply.limits.processes)}}},
          {"memory",
           {{"total_bytes", reply.memory.total_bytes},
            {"available_bytes", reply.memory.available_bytes},
            {"cgroup_bytes", limit(reply.memory.cgroup_bytes)},
            {"shm_bytes", reply.memory.shm_bytes},
            {"shm_free_bytes", reply.memory.shm_free_bytes}}},
          {"load",
           {{"cores", reply.load.cores},
            {"busy_cores", reply.load.busy_cores},
            {"busiest_process", word(reply.load.busiest)},
            {"governor", word(reply.load.governor)}}},
          {"interfaces", std::move(interfaces)}};
}

Json hosts_as_json(const CheckInput& input, const JobTopology& topology) {
  Json list = Json::array();
  for (std::size_t i = 0; i < input.hosts.size(); ++i) {
    const CheckedHost& host = input.hosts[i];
    Json one{{"name", printable(host.name, kMostJsonBytes)}, {"is_reachable", input.is_reached(i)}};
    one["ranks"] = host.ranks;
    if (host.facts) {
      one["answer_seconds"] = host.seconds_to_agent;
      one["clock_ahead_s"] = host.clock_ahead_s;
      one["cores"] = host.facts->usable_cores;
      one["gpus"] = host.facts->gpus.size();
      one["addresses"] = names(host.facts->addresses);
      one["topology"] = topology_as_json(topology.hosts.at(i));
      one["driver"] = driver_as_json(host);
    }
    if (host.told) one["reported"] = reported_as_json(*host.told);
    list.push_back(std::move(one));
  }
  return list;
}

Json findings_as_json(const CheckReport& report) {
  Json list = Json::array();
  for (const Finding& finding : report.findings)
    list.push_back({{"check", finding.probe},
                    {"id", finding.verdict},
                    {"cannot_start", finding.severity == Severity::kCannotStart},
                    {"hosts", names(finding.hosts)},
                    {"fact", printable(finding.fact, kMostJsonBytes)},
                    {"why", printable(finding.why, kMostJsonBytes)},
                    {"fix", printable(finding.fix, kMostJsonBytes)}});
  return list;
}

Json paths_as_json(const JobTopology& topology) {
  Json list = Json::array();
  for (const HostPath& path : topology.paths)
    list.push_back(
        {{"from", word(topology.hosts.at(path.from).name)},
         {"to", word(topology.hosts.at(path.to).name)},
         {"is_reachable", path.is_reached},
         {"address", path.address.empty() ? Json(nullptr) : Json(word(path.address))},
         {"address_of",
          path.address.empty() ? Json(nullptr) : Json(word(topology.hosts.at(path.receiver).name))},
         {"megabytes_per_s", or_null(path.megabytes_per_s)},
         {"round_trip_us", or_null(path.round_trip_us)}});
  return list;
}

}  // namespace

std::string report_as_json(const CheckInput& input, const CheckReport& report) {
  const JobTopology topology = topology_of(input);
  Json gaps = Json::array();
  for (const NotProbed& gap : report.not_probed)
    gaps.push_back({{"check", gap.probe},
                    {"hosts", names(gap.hosts)},
                    {"reason", printable(gap.reason, kMostJsonBytes)}});
  Json all{{"version", kVersion},
           {"can_start", report.can_start()},
           {"start_seconds", input.seconds},
           {"hosts", hosts_as_json(input, topology)},
           {"paths", paths_as_json(topology)},
           {"findings", findings_as_json(report)},
           {"not_checked", std::move(gaps)}};
  if (input.has_program && !input.plan.ranks.empty())
    all["plan"] = Json::parse(plan_as_json(input.spec, input.plan));
  return all.dump(2) + "\n";
}

}  // namespace hv::launcher
