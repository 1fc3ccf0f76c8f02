// Which address of each host do the others use? Decided from what agents could reach and prove.
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "src/wire/messages.h"

namespace hv::launcher {

// Hosts that `host` shall probe: all others up to 32 hosts; beyond, host 0 and the next 8 in a
// circle.
std::vector<int> probe_partners(int host, int hosts);

// Those of a host's addresses that its ranks use, in the order in which they are best tried.
// interfaces: as HVRUN_INTERFACES, which is well-formed. All, where it allows none: the ranks,
// whose affair it is, will say so.
std::vector<std::string> allowed_addresses(const wire::Facts& facts, const std::string& interfaces);
bool allows_no_address(const wire::Facts& facts, const std::string& interfaces);

struct ProbeOutcome {
  int from = 0;
  wire::ProbeResult result;
};

struct AddressChoice {
  // Per host: the one that most probers reached, of equals the first in the host's own order. Where
  // none was reached: the first that no other host has, too; else the host's name.
  std::vector<std::string> addresses;
  std::vector<std::string> warnings;  // pairs that cannot talk, in words
};

// names: for words; candidates: each host's own addresses in its order.
AddressChoice choose_addresses(const std::vector<std::string>& names,
                               const std::vector<std::vector<std::string>>& candidates,
                               const std::vector<ProbeOutcome>& outcomes);

}  // namespace hv::launcher
