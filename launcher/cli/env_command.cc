// SPDX-License-Identifier: Apache-2.0
#include "launcher/cli/env_command.h"

#include <algorithm>

#include "launcher/cli/knobs.h"
#include "src/base/text.h"
#include "src/contract/algorithms.h"
#include "src/contract/runtime_knobs.h"

namespace hv::launcher {
namespace {

using Row = std::vector<std::string>;

void add_rows(const std::vector<Knob>& table, const Environment& environment,
              std::vector<Row>* rows) {
  const KnobReader reader(table, environment);
  reader.check_all();
  for (const Knob& knob : table) {
    const KnobValue value = reader.value(knob.name);
    rows->push_back({knob.name, value.text.empty() ? "(unset)" : printable(value.text),
                     value.origin, knob.summary});
  }
}

// Those that are set.
void add_vain_rows(const Environment& environment, std::vector<Row>* rows) {
  for (const VainVariable& variable : vain_horovod_variables()) {
    const std::string value = environment.get_or(variable.name, "");
    if (!value.empty()) rows->push_back({variable.name, printable(value), "unused", variable.why});
  }
}

}  // namespace

std::string env_table(const Environment& environment) {
  std::vector<Row> rows{{"KNOB", "VALUE", "ORIGIN", "WHAT IT IS"}};
  add_rows(launcher_knobs(), environment, &rows);
  add_rows(runtime_knobs(), environment, &rows);
  add_vain_rows(environment, &rows);
  parse_algorithms(KnobReader(runtime_knobs(), environment).text("HVRUN_ALGORITHM"));
  std::string text;
  std::size_t widths[3] = {};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < 3; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < 3; ++i)
      text += row[i] + std::string(widths[i] + 2 - row[i].size(), ' ');
    text += row[3] + "\n";
  }
  for (const std::string& line : misspelt_variables(environment)) text += line + "\n";
  return text;
}

std::string env_algorithms(const Environment& environment) {
  const KnobReader reader(runtime_knobs(), environment);
  return algorithms_text(parse_algorithms(reader.text("HVRUN_ALGORITHM")));
}

}  // namespace hv::launcher
