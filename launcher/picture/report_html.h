// A check as one page for a browser: the picture of the topology, and the findings below it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "launcher/check/check_input.h"
#include "launcher/check/probe.h"

namespace hv::launcher {

// HTML that is well-formed XML. It asks for nothing from elsewhere, and has no script. made: by
// which hvrun, and when; empty: not said.
std::string report_as_html(const CheckInput& input, const CheckReport& report,
                           const std::string& made = {});

// The picture alone.
std::string report_as_svg(const CheckInput& input, const std::string& made = {});

}  // namespace hv::launcher
