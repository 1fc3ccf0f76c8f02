// Which link-local addresses of another host are tried over which interfaces of this one. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/net/interfaces.h"

namespace hv::runtime {

// "fe80::1%eth0": each of theirs over each interface of own that has such an address itself, at
// most `most`. First those where both interfaces have one name, as on hosts that are set up alike;
// else by theirs, then by own, which choose_addresses() has put in order.
std::vector<std::string> link_local_pairs(const std::vector<InterfaceAddress>& theirs,
                                          const std::vector<InterfaceAddress>& own,
                                          std::size_t most);

}  // namespace hv::runtime
