// Probe of names: to which addresses this host resolves its own name, and other hosts' names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/probes/host_probe.h"

namespace hv::launcher {

// Asks `getent ahosts`: this static program has no resolver of its own.
void inspect_names(const wire::CheckRequest& request, const Environment& environment,
                   wire::CheckReply* reply);

// The addresses in getent's output, each once: "10.0.0.1        STREAM node1".
std::vector<std::string> parse_getent(std::string_view output);

// The first line of /etc/hosts that gives the name an address: "line 2: 127.0.1.1 node1". Empty:
// there is none.
std::string line_of_hosts_file(std::string_view content, std::string_view name);

}  // namespace hv::launcher
