// SPDX-License-Identifier: Apache-2.0
#include "launcher/cli/knobs.h"

#include <chrono>
#include <set>
#include <string>

#include "launcher/cli/horovod_options.h"
#include "launcher/plan/grace.h"
#include "launcher/plan/slurm_variables.h"
#include "src/contract/contract.h"
#include "src/contract/runtime_knobs.h"

namespace hv::launcher {

const std::vector<Knob>& launcher_knobs() {
  static const std::string grace =
      std::to_string(std::chrono::duration_cast<std::chrono::seconds>(kDefaultGrace).count());
  static const std::vector<Knob> table{
      {"HVRUN_RSH", KnobType::kText, "", "Command that reaches a host, as with --rsh.", "", "", 0,
       0},
      {"HVRUN_START_TIMEOUT", KnobType::kSeconds, "30",
       "Time that a host has to answer, as with --start-timeout.", "", "", 0, 0},
      {"HVRUN_GRACE", KnobType::kSeconds, grace.c_str(),
       "Time between SIGTERM and SIGKILL at the end, as with --grace.", "", "", 0, 0},
      {"HVRUN_LOST_AFTER", KnobType::kSeconds, "15",
       "Silence after which a host counts as lost, as with --lost-after.", "", "", 0, 0, "",
       kLeastLostAfterSeconds},
      {"HVRUN_INVENTORY_TIMEOUT", KnobType::kSeconds, "20",
       "Time that a host's driver has to tell of its GPUs, where a plan needs that.", "", "", 0, 0},
      {"HVRUN_RESTART_DELAY", KnobType::kSeconds, "1",
       "Time before the first restart of --restarts; it doubles each time, to at most 30 s.", "",
       "", 0, 0},
  };
  return table;
}

// Variables of other programs: CMake's find_package and module files use the first three, the
// Python package the others; tests pass HVRUN_TEST_... through hvrun to ranks.
static bool is_read_by_others(const std::string& name) {
  static const std::set<std::string> names{"HVRUN_ROOT",    "HVRUN_DIR",     "HVRUN_HOME",
                                           "HVRUN_LIBRARY", "HVRUN_BIN_DIR", "HVRUN_RANK_PROCESS"};
  return names.count(name) > 0 || name.rfind("HVRUN_TEST_", 0) == 0;
}

std::vector<std::string> ignored_variables(const Environment& environment) {
  std::vector<std::string> others = contract_names();  // an hvrun inside a rank has these, too
  others.insert(others.end(), names_of_job_values().begin(), names_of_job_values().end());
  const Environment ours = environment.with_prefix("HVRUN_");
  for (const auto& [name, value] : ours.all())
    if (is_read_by_others(name)) others.push_back(name);
  for (const IgnoredVariable& variable : ignored_horovod_variables())
    others.push_back(variable.name);
  return ignored_settings({launcher_knobs(), runtime_knobs()}, others, environment);
}

std::vector<std::string> ignored_variables(const JobSpec& spec, const Environment& environment) {
  Environment all;  // names with other prefixes never get a line
  for (const char* prefix : {"HOROVOD_", "HVRUN_"}) {
    const Environment matches = environment.with_prefix(prefix);
    for (const auto& [name, value] : matches.all()) all.set(name, value);
  }
  const auto add = [&all](const Exports& exports) {
    for (const Export& each : exports.list())
      if (each.form == Export::Form::kValue) all.set(each.name, each.value);
  };
  add(spec.environment.exports);
  for (const ProgramSpec& program : spec.programs) add(program.exports);
  return ignored_variables(all);
}

}  // namespace hv::launcher
