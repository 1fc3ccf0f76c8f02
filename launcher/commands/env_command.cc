// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/env_command.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "hvrun_version.h"
#include "launcher/cli/horovod_options.h"
#include "launcher/cli/knobs.h"
#include "launcher/commands/commands.h"
#include "src/base/text.h"
#include "src/contract/algorithms.h"
#include "src/contract/runtime_knobs.h"

namespace hv::launcher {
namespace {

using TableRow = std::vector<std::string>;

constexpr const char* kAlgorithm = "HVRUN_ALGORITHM";
// Of env_json(): raised when a member is removed, renamed or changes its meaning.
constexpr int kEnvVersion = 2;

// The row of a malformed value. Keeps the first error.
TableRow malformed_row(const Knob& knob, const Environment& environment, const Error& error,
                       std::optional<Error>* trouble) {
  if (!*trouble) trouble->emplace(error);
  const std::string summary = std::string("MALFORMED: ") + error.what();
  for (const char* variable : {knob.name, knob.off_switch, knob.alias}) {
    const std::string text = *variable ? environment.get_or(variable, "") : "";
    if (!text.empty()) return {knob.name, printable(text), variable, summary};
  }
  return {knob.name, "", "default", summary};
}

void add_knob_rows(const std::vector<Knob>& table, const Environment& environment,
                   std::vector<TableRow>* rows, std::optional<Error>* trouble) {
  const KnobReader reader(table, environment);
  for (const Knob& knob : table) {
    try {
      reader.check(knob);
      const KnobValue value = reader.value(knob.name);
      if (knob.name == std::string_view(kAlgorithm)) parse_algorithms(value.text);
      rows->push_back({knob.name, value.text.empty() ? "(unset)" : printable(value.text),
                       value.origin, knob.summary});
    } catch (const Error& error) {
      rows->push_back(malformed_row(knob, environment, error, trouble));
    }
  }
}

// Horovod's variables that are set and have no effect.
void add_ignored_rows(const Environment& environment, std::vector<TableRow>* rows) {
  for (const IgnoredVariable& variable : ignored_horovod_variables()) {
    const std::string value = environment.get_or(variable.name, "");
    if (!value.empty())
      rows->push_back({variable.name, printable(value), "unused", variable.reason});
  }
}

// Prints the whole table first: it makes a malformed value easy to fix.
int print_env(const Environment& environment, bool is_json) {
  const EnvTable table = env_table(environment);
  const BuildFacts facts = gather_build_facts(environment);
  const int code = is_json ? print_text(env_json(table, facts))
                           : print_report(env_text(table) + backends_text(facts));
  if (table.trouble) throw Error(*table.trouble);
  return code;
}

}  // namespace

EnvCommand parse_env_command(const std::vector<std::string>& words) {
  if (words.empty()) return {};
  if (words.size() == 1 && words[0] == "--algorithms") return {EnvCommand::Form::kAlgorithms};
  const std::string text = join(words, "=");  // "--format json" and "--format=json" alike
  if (text == "--json" || text == "--format=json") return {EnvCommand::Form::kJson};
  if (text == "--format=text") return {};
  throw Error(ErrorKind::kUsage, "'hvrun env' takes one option, --algorithms or --format json",
              "to run the program env: hvrun -- env " + words[0]);
}

EnvTable env_table(const Environment& environment) {
  EnvTable table;
  add_knob_rows(launcher_knobs(), environment, &table.rows, &table.trouble);
  add_knob_rows(runtime_knobs(), environment, &table.rows, &table.trouble);
  add_ignored_rows(environment, &table.rows);
  table.ignored = ignored_variables(environment);
  return table;
}

std::string env_text(const EnvTable& table) {
  std::vector<TableRow> rows{{"KNOB", "VALUE", "ORIGIN", "WHAT IT IS"}};
  rows.insert(rows.end(), table.rows.begin(), table.rows.end());
  std::string text;
  std::size_t widths[3] = {};
  for (const TableRow& row : rows) {
    for (std::size_t i = 0; i < 3; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const TableRow& row : rows) {
    for (std::size_t i = 0; i < 3; ++i)
      text += row[i] + std::string(widths[i] + 2 - row[i].size(), ' ');
    text += row[3] + "\n";
  }
  for (const std::string& line : table.ignored) text += line + "\n";
  return text;
}

std::string env_json(const EnvTable& table, const BuildFacts& facts) {
  nlohmann::ordered_json json{{"version", kEnvVersion}, {"hvrun_version", HVRUN_VERSION_TEXT}};
  for (const TableRow& row : table.rows)
    json["settings"].push_back(
        {{"name", row[0]}, {"value", row[1]}, {"origin", row[2]}, {"summary", row[3]}});
  json["ignored"] = table.ignored;
  const auto as_json = [](const BuildFact& fact) {
    return nlohmann::ordered_json{
        {"name", fact.name}, {"is_usable", fact.is_there}, {"text", fact.text}};
  };
  for (const BuildFact& fact : facts.frameworks) json["frameworks"].push_back(as_json(fact));
  for (const BuildFact* fact : {&facts.mpi, &facts.nccl, &facts.cuda, &facts.operations})
    json[lower(fact->name)] = as_json(*fact);
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string env_algorithms(const Environment& environment) {
  const KnobReader reader(runtime_knobs(), environment);
  return algorithms_text(parse_algorithms(reader.text(kAlgorithm)));
}

int run_env(const std::vector<std::string>& words, const Environment& environment) {
  const EnvCommand command = parse_env_command(words);
  if (command.form == EnvCommand::Form::kAlgorithms) return print_text(env_algorithms(environment));
  return print_env(environment, command.form == EnvCommand::Form::kJson);
}

}  // namespace hv::launcher
