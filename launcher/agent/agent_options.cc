// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/agent_options.h"

#include "launcher/agent/control_connection.h"
#include "src/base/bounded_seconds.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostStepName = 64;

}  // namespace

std::optional<AgentOptions> parse_agent_options(const std::vector<std::string>& arguments) {
  AgentOptions options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--version" && arguments.size() == 1) {
      options.shows_version = true;
    } else if (arguments[i] == "--remove-self") {
      options.removes_itself = true;
    } else if (arguments[i] == "--lost-after" && i + 1 < arguments.size()) {
      const auto seconds = parse_seconds(arguments[++i]);
      if (!seconds) return std::nullopt;
      options.lost_after = bounded_seconds(*seconds);
    } else if (arguments[i] == "--step" && i + 1 < arguments.size()) {
      options.step = arguments[++i];
    } else if (arguments[i] == "--connect" && i + 1 < arguments.size() && options.hvrun.empty()) {
      options.hvrun = parse_addresses(arguments[++i]);
      if (options.hvrun.empty()) return std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  if (options.step.size() > kMostStepName) return std::nullopt;
  return options;
}

}  // namespace hv::launcher
