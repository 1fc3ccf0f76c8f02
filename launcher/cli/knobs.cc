// SPDX-License-Identifier: Apache-2.0
#include "launcher/cli/knobs.h"

#include "src/contract/runtime_knobs.h"

namespace hv::launcher {

const std::vector<Knob>& launcher_knobs() {
  static const std::vector<Knob> table{
      {"HVRUN_RSH", KnobType::kText, "", "Command that reaches a host, as with --rsh.", "", "", 0,
       0},
      {"HVRUN_START_TIMEOUT", KnobType::kSeconds, "30",
       "Time that a host has to answer, as with --start-timeout.", "", "", 0, 0},
      {"HVRUN_GRACE", KnobType::kSeconds, "3",
       "Time between SIGTERM and SIGKILL at the end, as with --grace.", "", "", 0, 0},
      {"HVRUN_LOST_AFTER", KnobType::kSeconds, "15",
       "Silence after which a host counts as lost, as with --lost-after.", "", "", 0, 0, "",
       kLeastLostAfterSeconds},
  };
  return table;
}

std::vector<std::string> misspelt_variables(const Environment& environment) {
  return misspelt_knobs({launcher_knobs(), runtime_knobs()}, environment);
}

}  // namespace hv::launcher
