// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/output_options.h"

#include <unistd.h>

namespace hv::launcher {

OutputOptions output_options(const JobSpec& spec, const Environment& environment) {
  OutputOptions options;
  options.label = spec.label;
  options.timestamp = spec.timestamp;
  options.directory = spec.output_directory;
  options.stdout_is_terminal = ::isatty(1) == 1;
  options.stderr_is_terminal = ::isatty(2) == 1;
  options.colour =
      environment.get_or("NO_COLOR", "").empty() && environment.get_or("TERM", "dumb") != "dumb";
  return options;
}

}  // namespace hv::launcher
