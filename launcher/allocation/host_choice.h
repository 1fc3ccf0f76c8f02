// Some of the hosts that a file or a scheduler names: -H beside it, --include, --exclude. Pure but
// for look_up (HostIndex).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "launcher/allocation/host_list.h"

namespace hv::launcher {

// Those of `from` that the words of -H name, in their order. A number of slots stated there counts,
// and may not be more than the list has. source: whose list it is. Throws Error(kUsage) for a host
// that is not in the list.
HostList choose_hosts(const HostList& from, const std::string& source, std::string_view wanted,
                      const AddressLookup& look_up = {});

// DeepSpeed's --include and --exclude: "w1:0,2@w2" is slots 0 and 2 of w1 and all of w2. A slot is
// a GPU of the host's, or of those that its line states. Throws Error(kUsage), also where nothing
// is left.
HostList include_hosts(const HostList& from, std::string_view expression,
                       const AddressLookup& look_up = {});
HostList exclude_hosts(const HostList& from, std::string_view expression,
                       const AddressLookup& look_up = {});

}  // namespace hv::launcher
