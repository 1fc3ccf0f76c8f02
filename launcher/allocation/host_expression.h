// Hosts as an option states them: -H, and --include and --exclude on top. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "launcher/allocation/host_list.h"

namespace hv::launcher {

// "a:2,user@b:4,[fd00::1]:2,n[01-16]:4,c". source: for messages. Throws Error(kUsage).
HostList parse_host_expression(std::string_view text, const std::string& source = "-H");

}  // namespace hv::launcher
