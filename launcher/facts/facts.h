// What is in this host, for the agent's Hello: from /proc, /sys and device nodes only, in about a
// millisecond.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "src/base/environment.h"
#include "src/wire/messages.h"

namespace hv::launcher {

// own: this process's environment. root: put before every path of a file, for tests.
wire::Facts gather_facts(const Environment& own, const std::string& root = "");

}  // namespace hv::launcher
