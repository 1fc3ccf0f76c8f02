// Ways between hosts that look bad, and what a second look makes of them. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "launcher/check/check_input.h"

namespace hv::launcher {

// A path with less is slow, whatever the others are: a finding, and drawn so.
constexpr double kSlowPath_MBs = 50;

// Places in CheckInput::pairs of ways that would be told as slow, long or losing packets. A host
// that was busy for a moment looks like that, too: whoever measured them does so again.
std::vector<std::size_t> doubtful_ways(const CheckInput& input);

// More than kMostResentShare of what was sent had to be sent again.
bool loses_packets(const wire::PairMeasure& measure);

// What tells least against the way in two measures of it.
wire::PairMeasure better_measure(const wire::PairMeasure& first, const wire::PairMeasure& second);

}  // namespace hv::launcher
