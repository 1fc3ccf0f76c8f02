// SPDX-License-Identifier: Apache-2.0
#include "launcher/picture/report_html.h"

#include <algorithm>
#include <vector>

#include "launcher/allocation/host_names.h"
#include "launcher/check/groups.h"
#include "launcher/check/report/report_text.h"
#include "launcher/picture/picture.h"
#include "launcher/picture/topology_svg.h"
#include "launcher/plan/plan_text.h"
#include "src/base/clock.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostPaths = 200;  // listed

// A browser is to run and fetch nothing, should anything foreign come through after all.
constexpr const char* kHead =
    "<!DOCTYPE html>\n"
    "<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n"
    "<meta charset=\"utf-8\"/>\n"
    "<meta http-equiv=\"Content-Security-Policy\""
    " content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
    "<meta name=\"color-scheme\" content=\"light dark\"/>\n";

constexpr const char* kStyle =
    "<style>\n"
    "body { margin: 1.5rem; background: #ffffff; color: #1b1f24;\n"
    "  font: 15px/1.45 system-ui, 'DejaVu Sans', 'Liberation Sans', sans-serif; }\n"
    "h1 { font-size: 1.25rem; margin: 0 0 0.3rem; white-space: pre-wrap;\n"
    "  overflow-wrap: anywhere; }\n"
    "h2 { font-size: 1.05rem; margin: 1.2rem 0 0.4rem; }\n"
    "p { margin: 0.3rem 0; overflow-wrap: anywhere; }\n"
    ".picture { overflow-x: auto; margin-top: 0.8rem; }\n"
    "table { border-collapse: collapse; max-width: 1200px; }\n"
    "th, td { text-align: left; vertical-align: top; padding: 0.35rem 0.7rem;\n"
    "  border-bottom: 1px solid #c4ccd5; overflow-wrap: anywhere; }\n"
    "th { white-space: nowrap; }\n"
    "code { font-family: 'DejaVu Sans Mono', 'Liberation Mono', Menlo, Consolas, monospace;\n"
    "  font-size: 0.9em; }\n"
    "a { color: inherit; }\n"
    ".worst { color: #cf222e; font-weight: bold; }\n"
    "@media (prefers-color-scheme: dark) {\n"
    "  body { background: #0d1117; color: #e6edf3; }\n"
    "  th, td { border-color: #3d4650; }\n"
    "  .worst { color: #ff7b72; }\n"
    "}\n</style>\n";

std::string cell(const std::string& text) { return "<td>" + escaped(text) + "</td>"; }

std::string heading_of(const CheckInput& input) {
  if (input.has_program && !input.plan.ranks.empty())
    return std::string(trim(plan_heading(input.spec, input.plan)));
  return count_of(input.hosts.size(), "host");
}

// At the top, where many hosts' picture is long.
std::string link_to_findings(const CheckReport& report) {
  const std::size_t count = report.findings.size();
  if (count == 0) return "";
  return " <a href=\"#findings\">" + count_of(count, "finding") + "</a>";
}

std::string findings_table(const CheckReport& report) {
  if (report.findings.empty()) return "<p>Nothing was found.</p>\n";
  std::string text =
      "<table>\n<thead><tr><th>Severity</th><th>Hosts</th><th>What was found</th>"
      "<th>Why it matters</th><th>Try</th></tr></thead>\n<tbody>\n";
  for (const Finding& finding : report.findings) {
    const bool is_worst = finding.severity == Severity::kCannotStart;
    text += std::string("<tr><td") + (is_worst ? " class=\"worst\"" : "") + ">" +
            severity_in_words(finding.severity) + "</td>" + cell(fold_host_names(finding.hosts)) +
            cell(finding.fact) + cell(finding.why) + "<td><code>" + escaped(finding.fix) +
            "</code><br/>[" + escaped(finding.verdict) + "]</td></tr>\n";
  }
  return text + "</tbody>\n</table>\n";
}

// The slowest first.
std::vector<HostPath> measured_paths(const JobTopology& topology) {
  std::vector<HostPath> paths;
  for (const HostPath& path : topology.paths)
    if (path.megabytes_per_s) paths.push_back(path);
  std::stable_sort(paths.begin(), paths.end(), [](const HostPath& a, const HostPath& b) {
    return *a.megabytes_per_s < *b.megabytes_per_s;
  });
  return paths;
}

std::string path_row(const JobTopology& topology, const HostPath& path) {
  const std::size_t sender = path.receiver == path.to ? path.from : path.to;
  const std::string time =
      path.round_trip_us ? format_duration(Seconds(*path.round_trip_us / 1e6)) : "-";
  return "<tr>" + cell(topology.hosts[sender].name) + cell(topology.hosts[path.receiver].name) +
         cell(bandwidth_in_words(*path.megabytes_per_s)) +
         cell(colour_name_of(*path.megabytes_per_s)) + cell(time) + cell(path.address) + "</tr>\n";
}

// The numbers behind the colours of the picture.
std::string paths_table(const JobTopology& topology) {
  const std::vector<HostPath> paths = measured_paths(topology);
  if (paths.empty()) return "";
  std::string text =
      "<h2>Paths between hosts</h2>\n<table>\n<thead><tr><th>From</th><th>To</th>"
      "<th>Bandwidth</th><th>Colour</th><th>Round trip</th><th>Address</th></tr></thead>\n"
      "<tbody>\n";
  const std::size_t shown = std::min(paths.size(), kMostPaths);
  for (std::size_t i = 0; i < shown; ++i) text += path_row(topology, paths[i]);
  text += "</tbody>\n</table>\n";
  if (shown < paths.size())
    text += "<p>" + std::to_string(paths.size() - shown) + " faster ones are left out.</p>\n";
  return text;
}

std::string gaps_table(const CheckReport& report) {
  if (report.not_probed.empty()) return "";
  std::string text =
      "<h2>Not looked at</h2>\n<table>\n<thead><tr><th>Probe</th><th>Hosts</th><th>Reason</th>"
      "</tr></thead>\n<tbody>\n";
  for (const NotProbed& gap : merge_gaps(report.not_probed))
    text +=
        "<tr>" + cell(gap.probe) + cell(fold_host_names(gap.hosts)) + cell(gap.reason) + "</tr>\n";
  return text + "</tbody>\n</table>\n";
}

}  // namespace

std::string report_as_svg(const CheckInput& input, const std::string& made) {
  return topology_as_svg(topology_of(input), heading_of(input), PictureColours::kPlain, made);
}

std::string report_as_html(const CheckInput& input, const CheckReport& report,
                           const std::string& made) {
  const JobTopology topology = topology_of(input);
  const std::string heading = escaped(heading_of(input));
  return std::string(kHead) + "<title>hvrun: " + heading + "</title>\n" + kStyle +
         "</head>\n<body>\n<h1>" + heading + "</h1>\n<p" +
         (report.can_start() ? "" : " class=\"worst\"") + ">" +
         escaped(verdict_in_words(input, report)) + link_to_findings(report) +
         "</p>\n<div class=\"picture\">\n" +
         topology_as_svg(topology, heading_of(input), PictureColours::kViewers) +
         "</div>\n<h2 id=\"findings\">Findings</h2>\n" + findings_table(report) +
         gaps_table(report) + paths_table(topology) +
         (made.empty() ? "" : "<p>" + escaped(made) + "</p>\n") + "</body>\n</html>\n";
}

}  // namespace hv::launcher
