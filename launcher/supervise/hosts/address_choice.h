// Chooses the address by which each host is reached, from the addresses that agents could reach and
// authenticate. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/contract/rank_environment.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// The hosts whose addresses `host` tests: all others up to 32 hosts; beyond that host 0 and the
// next 8 in a circle.
std::vector<int> probe_partners(int host, int hosts);

// The addresses of a host that its ranks use, best first. interfaces: a well-formed
// HVRUN_INTERFACES. If it allows none, all addresses: the ranks report that error.
std::vector<std::string> allowed_addresses(const wire::Facts& facts, const std::string& interfaces);
bool allows_no_address(const wire::Facts& facts, const std::string& interfaces);

// Hosts by their position in the epoch.
struct ProbeOutcome {
  int from = 0;
  int to = 0;
  std::vector<std::string> reached{};  // addresses of `to`
  std::string reason{};                // why none was reached
};

struct AddressChoice {
  // Per host: the address that most other hosts reached; among equals the first in the host's own
  // order. If none was reached: the first that no other host has; else the host's name.
  std::vector<std::string> addresses;
  // Per host: its addresses that all hosts which tested them reached, in the host's own order.
  std::vector<std::vector<std::string>> common;
  std::vector<std::string> warnings;  // pairs of hosts that cannot connect
};

// names: for warnings; candidates: each host's own addresses in its order.
AddressChoice choose_addresses(const std::vector<std::string>& names,
                               const std::vector<std::vector<std::string>>& candidates,
                               const std::vector<ProbeOutcome>& outcomes);

// The interfaces by which Gloo, TensorPipe and NCCL of this host's ranks reach other hosts: that of
// `address`, the chosen one. Without them Gloo takes the address of the hostname, which may be
// 127.0.1.1 or none. NCCL finds its interfaces itself: its variable is set only if it would also
// take some that have no address in `common`. Empty where the address was not tested.
wire::Pairs interface_variables(const wire::Facts& facts, const std::string& address,
                                const std::vector<std::string>& common);

// One for each interface of the ranks' own GLOO_SOCKET_IFNAME or TP_SOCKET_IFNAME that a host
// lacks, or that has no address for other hosts there. A host alone may use its loopback interface.
// hosts: their names with their facts.
std::vector<std::string> warnings_on_interfaces(
    const RankEnvironment& ranks,
    const std::vector<std::pair<std::string, const wire::Facts*>>& hosts);

}  // namespace hv::launcher
