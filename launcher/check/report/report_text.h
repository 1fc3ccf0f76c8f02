// A check as people and programs read it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "launcher/check/check_input.h"
#include "launcher/check/probe.h"

namespace hv::launcher {

// What runs, the hosts with who would run where, verdicts, the worst first, what was not looked at,
// and whether the job could start.
std::string report_as_text(const CheckInput& input, const CheckReport& report);

// "The job could start: 2 ranks on 1 host, in about 0.8 s."
std::string verdict_in_words(const CheckInput& input, const CheckReport& report);
// Merges gaps with the same hosts and reason: the probe of the result is "limits, memory".
std::vector<NotProbed> merge_gaps(const std::vector<NotProbed>& gaps);
// "gpus on n8: it has not answered within 5 s"
std::string gap_in_words(const NotProbed& gap);
// "cannot start"
const char* severity_in_words(Severity severity);

// For programs: one object, described in hvrun-check(1): version, can_start, seconds, hosts with
// their topology and what they have told, the ways between them, findings, not_probed and, where
// there is one, the plan. No secret is in it.
std::string report_as_json(const CheckInput& input, const CheckReport& report);

}  // namespace hv::launcher
