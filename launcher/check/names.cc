// Do the hosts' own names lead other hosts to them?
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "launcher/check/probe_list.h"
#include "launcher/check/told.h"
#include "src/net/address.h"

namespace hv::launcher {
namespace {

bool is_loopback(const std::string& address) {
  const auto parsed = SocketAddress::parse(address, 0);
  return parsed && parsed->is_loopback();
}

// A host alone needs no address that leads to it.
void judge_names(const CheckInput& input, Judgement* judgement) {
  const std::vector<ToldHost> hosts = told_by(input, "names", judgement);
  if (input.hosts.size() < 2) return;
  std::vector<HostFact> unknown, loopback;
  for (const ToldHost& host : hosts) {
    if (host.told->names.empty()) continue;
    const wire::NameFacts& own = host.told->names.front();
    if (own.addresses.empty()) {
      unknown.emplace_back(host.host->name, "no address for '" + own.name + "'");
    } else if (std::all_of(own.addresses.begin(), own.addresses.end(), is_loopback)) {
      loopback.emplace_back(host.host->name, own.hosts_line.empty()
                                                 ? "'" + own.name + "' is " + own.addresses.front()
                                                 : "/etc/hosts, " + own.hosts_line);
    }
  }
  add_grouped("hostname-unknown", unknown, judgement);
  add_grouped("hostname-loopback", loopback, judgement);
}

constexpr const char* kWhy =
    "hvrun gives PyTorch's Gloo and TensorPipe the right interface, but the ranks of programs that "
    "publish their host's name or its address (Ray, Spark, JAX, TensorFlow) do not reach each "
    "other";

}  // namespace

const Probe kNamesProbe{
    "names",
    "the address that each host resolves its own name to",
    {{"hostname-loopback", Severity::kHarms,
      "a host resolves its own name to a loopback address, which leads no other host to it", kWhy,
      "give the name the host's own address in that line: ssh -t $HOST sudo nano /etc/hosts"},
     {"hostname-unknown", Severity::kHarms, "a host does not resolve its own name", kWhy,
      "add a line with its address and its name: ssh -t $HOST sudo nano /etc/hosts"}},
    judge_names};

}  // namespace hv::launcher
