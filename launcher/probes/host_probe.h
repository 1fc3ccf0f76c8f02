// The probes of a check: each gathers facts about this host, in a source of its own. launcher/check
// judges them.
// SPDX-License-Identifier: Apache-2.0
//
// All probes run in one process, "hvrun-agent --probe", which has the environment of the ranks.
// Each runs on its own thread, so that one that hangs (in a file system whose server is gone, say)
// holds up no other. No probe writes a file.
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
  // Fills this probe's part of the reply, and adds to `unanswered` what it could not find out.
  // environment: the ranks'.
  void (*inspect)(const wire::CheckRequest& request, const Environment& environment,
                  wire::CheckReply* reply);
  // Moves this probe's part of a reply to another reply.
  void (*merge)(wire::CheckReply&& from, wire::CheckReply* to);
};

const std::vector<HostProbe>& host_probes();
// names: wire::CheckRequest::probes.
bool is_requested(const HostProbe& probe, const std::vector<std::string>& names);

constexpr const char* kProbe = "--probe";
constexpr const char* kProbeName = "hvrun-probe";  // name of such a process
// hvrun-agent --probe: reads the request from standard input, a file; writes each answer to
// standard output as soon as it is complete. Returns the exit code.
int run_host_probes();

// Splits that output: (index in host_probes(), an encoded CheckReply). Leaves out a last answer
// that is cut short.
std::vector<std::pair<std::size_t, std::string_view>> parse_probe_answers(std::string_view bytes);

// Reports interfaces with their MTU and speed, and the ports of RDMA adapters, up or not.
void inspect_network(const wire::CheckRequest& request, const Environment& environment,
                     wire::CheckReply* reply);

// root: prefix of every path, for tests.
wire::NetworkFacts read_network(const std::string& root = "");

// Counts the ports of HVRUN_PORT_RANGE that are in use.
void inspect_ports(const wire::CheckRequest& request, const Environment& environment,
                   wire::CheckReply* reply);

}  // namespace hv::launcher
