// docs/troubleshooting.md's table of all verdicts, made from the probes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace hv::launcher {

// Markdown: a section a probe, a row a verdict.
std::string verdicts_as_markdown();

}  // namespace hv::launcher
