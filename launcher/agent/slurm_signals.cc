// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/slurm_signals.h"

#include <string>

#include "launcher/facts/read_file.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// Of a host that gets its configuration from slurmctld, the second.
constexpr const char* kPlaces[] = {"/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf"};

}  // namespace

bool signals_every_process(std::string_view slurm_conf) {
  for (const std::string& raw : split(slurm_conf, '\n')) {
    const std::string line = lower(raw.substr(0, raw.find('#')));
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos || trim(line.substr(0, equals)) != "proctracktype") continue;
    const std::string_view value = trim(std::string_view(line).substr(equals + 1));
    return value == "proctrack/linuxproc" || value == "linuxproc";
  }
  return false;
}

bool slurm_signals_every_process(const Environment& environment) {
  if (!environment.get_filled("SLURM_JOB_ID")) return false;
  if (const auto named = environment.get_filled("SLURM_CONF"))
    return signals_every_process(read_file(*named).value_or(""));
  for (const char* place : kPlaces)
    if (const auto text = read_file(place)) return signals_every_process(*text);
  return false;
}

}  // namespace hv::launcher
