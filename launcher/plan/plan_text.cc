// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/plan_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "launcher/plan/rank_resources.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

using Json = nlohmann::ordered_json;

// JSON holds text only: escapes bytes that are not UTF-8.
std::string json_text(const std::string& bytes) { return printable(bytes, 1 << 20); }

Json rank_as_json(const LaunchPlan& plan, const PlannedRank& rank) {
  const RankIdentity& who = rank.identity;
  Json json;
  json["rank"] = who.rank;
  json["host"] = plan.hosts[static_cast<std::size_t>(rank.host)].name;
  json["program"] = rank.program;
  json["local_rank"] = who.local_rank;
  json["local_size"] = who.local_size;
  json["cross_rank"] = who.cross_rank;
  json["cross_size"] = who.cross_size;
  json["gpu"] = rank.gpu_names.empty() ? Json(nullptr) : Json(rank.gpu_names.front().number);
  json["gpus"] = json["gpu_uuids"] = Json::array();
  for (const PlannedGpu& gpu : rank.gpu_names) {
    json["gpus"].push_back(gpu.number);
    json["gpu_uuids"].push_back(gpu.uuid.empty() ? Json(nullptr) : Json(json_text(gpu.uuid)));
  }
  json["cores"] = rank.nodes.empty() && rank.cores.empty() ? Json(nullptr) : Json(rank.cores);
  json["numa_nodes"] = rank.nodes;
  json["variables"] = Json::object();
  for (const auto& [name, value] : rank.variables) json["variables"][name] = json_text(value);
  return json;
}

std::string pad(const std::string& text, std::size_t width) {
  return text + std::string(width > text.size() ? width - text.size() : 0, ' ');
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += pad(row[i], widths[i] + 2);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string command_of(const ProgramSpec& program) {
  std::vector<std::string> words;
  for (const std::string& word : program.argv) words.push_back(shell_quote(printable(word, 4096)));
  return join(words, " ");
}

// The program at the end of the line; several programs get a line each.
std::string programs_as_text(const JobSpec& spec) {
  if (spec.programs.size() == 1) return ", each runs: " + command_of(spec.programs[0]);
  std::string text;
  int first = 0;
  for (const ProgramSpec& program : spec.programs) {
    const int last = first + program.ranks - 1;
    text +=
        "\n" +
        (last == first ? "rank " + std::to_string(first) + " runs: "
                       : "ranks " + std::to_string(first) + "-" + std::to_string(last) + " run: ") +
        command_of(program);
    first = last + 1;
  }
  return text;
}

Json words_as_json(const ProgramSpec& program) {
  Json words = Json::array();
  for (const std::string& word : program.argv) words.push_back(json_text(word));
  return words;
}

}  // namespace

std::string plan_heading(const JobSpec& spec, const LaunchPlan& plan) {
  return count_of(plan.ranks.size(), "rank") + " on " + count_of(plan.hosts.size(), "host") +
         programs_as_text(spec) + "\n";
}

std::string plan_as_text(const JobSpec& spec, const LaunchPlan& plan) {
  std::string text = plan_heading(spec, plan);
  std::vector<std::vector<std::string>> rows{{"RANK", "HOST", "LOCAL RANK", "CROSS RANK", "GPU"}};
  bool assumed = false;
  for (const PlannedRank& rank : plan.ranks) {
    const PlannedHost& host = plan.hosts[static_cast<std::size_t>(rank.host)];
    const RankIdentity& who = rank.identity;
    assumed = assumed || host.slots_assumed;
    rows.push_back({std::to_string(who.rank), host.name + (host.slots_assumed ? " *" : ""),
                    std::to_string(who.local_rank) + " of " + std::to_string(who.local_size),
                    std::to_string(who.cross_rank) + " of " + std::to_string(who.cross_size),
                    rank.gpu_names.empty() ? "-" : gpus_as_text(rank)});
  }
  text += table(rows);
  if (assumed)
    text += std::string("* ") +
            (spec.placement.map_by.by == MapBy::kGpu
                 ? "GPUs not asked for: as many as the stated slots assumed, else 1"
                 : "slots not stated and not asked: 1 assumed") +
            " (a launch counts the host's GPUs)\n";
  return text;
}

std::string plan_as_json(const JobSpec& spec, const LaunchPlan& plan) {
  Json json;
  json["version"] = 1;
  json["size"] = plan.ranks.size();
  const ProgramSpec& first = spec.programs.at(0);
  json["program"] = words_as_json(first);
  json["working_directory"] = json_text(first.working_directory);
  json["programs"] = Json::array();
  for (const ProgramSpec& program : spec.programs)
    json["programs"].push_back(words_as_json(program));
  json["hosts"] = Json::array();
  for (const PlannedHost& host : plan.hosts) {
    Json entry;
    entry["name"] = host.name;
    entry["slots"] = host.slots;
    entry["slots_assumed"] = host.slots_assumed;
    entry["ranks"] = host.ranks;
    json["hosts"].push_back(entry);
  }
  json["ranks"] = Json::array();
  for (const PlannedRank& rank : plan.ranks) json["ranks"].push_back(rank_as_json(plan, rank));
  json["warnings"] = plan.warnings;
  return json.dump(2) + "\n";
}

}  // namespace hv::launcher
