// What an agent looks at for a check: one file a probe. Judgements are launcher/check's affair.
// SPDX-License-Identifier: Apache-2.0
//
// All run in one process, "hvrun-agent --probe", whose environment is the ranks', each on a thread
// of its own. So one may take its time, up to a deadline, and may hang: in a file system whose
// server is gone, say. The others' answers are there by then. None writes anywhere.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/environment.h"
#include "src/wire/check.h"

namespace hv::launcher {

struct HostProbe {
  const char* name;
  // Fills its part of the reply, and nothing else of it but `unanswered`, with what it could not
  // learn. environment: the ranks'.
  void (*look)(const wire::CheckRequest& request, const Environment& environment,
               wire::CheckReply* reply);
  // Takes over that part of another reply.
  void (*take)(wire::CheckReply&& from, wire::CheckReply* to);
};

const std::vector<HostProbe>& host_probes();
// names: wire::CheckRequest::probes.
bool is_wanted(const HostProbe& probe, const std::vector<std::string>& names);

constexpr const char* kProbe = "--probe";
constexpr const char* kProbeName = "hvrun-probe";  // of such a process
// hvrun-agent --probe: the request on standard input, a file; answers on standard output, each as
// soon as it is there. Returns the exit code.
int run_host_probes();

// What has come of those answers: (index in host_probes(), an encoded CheckReply). The last one may
// have been cut short; it is left out.
std::vector<std::pair<std::size_t, std::string_view>> parse_probe_answers(std::string_view bytes);

// Interfaces with their MTU and speed, and the ports of RDMA adapters, up or not.
void look_at_network(const wire::CheckRequest& request, const Environment& environment,
                     wire::CheckReply* reply);

// root: put before every path, for tests.
wire::NetworkFacts read_network(const std::string& root = "");

// How many ports of HVRUN_PORT_RANGE somebody has already.
void look_at_ports(const wire::CheckRequest& request, const Environment& environment,
                   wire::CheckReply* reply);

}  // namespace hv::launcher
