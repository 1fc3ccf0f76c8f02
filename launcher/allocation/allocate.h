// Where the hosts of a job come from: -H, --hostfile, or nobody (this machine).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "launcher/allocation/host_list.h"

namespace hv::launcher {

// hosts: -H as written; a word without comma, colon or bracket that is a readable file is that
// hostfile. host_file: --hostfile. Both empty: this machine. Throws Error(kUsage).
HostList allocate(const std::string& hosts, const std::string& host_file);

}  // namespace hv::launcher
