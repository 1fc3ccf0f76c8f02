// SPDX-License-Identifier: Apache-2.0
#include "launcher/check/report/report_text.h"

#include <algorithm>

#include "launcher/allocation/host_names.h"
#include "launcher/check/groups.h"
#include "launcher/check/report/topology.h"
#include "launcher/plan/plan_text.h"
#include "src/base/clock.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostTextBytes = 2000;

std::string finding_as_text(const Finding& finding) {
  return std::string(severity_in_words(finding.severity)) + ": " +
         printable(finding.fact, kMostTextBytes) +
         "\n  why: " + printable(finding.why, kMostTextBytes) +
         (finding.fix.empty() ? "" : "\n  try: " + printable(finding.fix, kMostTextBytes)) + "  [" +
         finding.verdict + "]\n";
}

}  // namespace

std::vector<NotProbed> merge_gaps(const std::vector<NotProbed>& gaps) {
  std::vector<NotProbed> merged;
  for (const NotProbed& gap : gaps) {
    const auto same = std::find_if(merged.begin(), merged.end(), [&gap](const NotProbed& one) {
      return one.hosts == gap.hosts && one.reason == gap.reason;
    });
    if (same == merged.end())
      merged.push_back(gap);
    else
      same->probe += ", " + gap.probe;
  }
  return merged;
}

std::string gap_in_words(const NotProbed& gap) {
  return gap.probe + (gap.hosts.empty() ? "" : " on " + hosts_text(gap.hosts)) + ": " +
         printable(gap.reason, kMostTextBytes);
}

const char* severity_in_words(Severity severity) {
  return severity == Severity::kCannotStart ? "cannot start" : "harms";
}

std::string verdict_in_words(const CheckInput& input, const CheckReport& report) {
  if (!report.can_start()) return "The job could not start.";
  const std::string what =
      input.has_program ? "The job could start: " + count_of(input.plan.ranks.size(), "rank") +
                              " on " + count_of(input.hosts.size(), "host")
                        : "Jobs could start on " + count_of(input.hosts.size(), "host");
  return what + ", in about " + format_duration(Seconds(input.seconds)) + ".";
}

std::string report_as_text(const CheckInput& input, const CheckReport& report) {
  std::string text;
  if (input.has_program && !input.plan.ranks.empty()) text += plan_heading(input.spec, input.plan);
  text += topology_as_text(topology_of(input));
  if (!text.empty()) text += "\n";
  for (const Finding& finding : report.findings) text += finding_as_text(finding);
  for (const NotProbed& gap : merge_gaps(report.not_probed))
    text += "not looked at: " + gap_in_words(gap) + "\n";
  if (!report.findings.empty() || !report.not_probed.empty()) text += "\n";
  return text + verdict_in_words(input, report) + "\n";
}

}  // namespace hv::launcher
