// hvrun check: would jobs start on these hosts, and run well? Text or JSON, and pictures.
// SPDX-License-Identifier: Apache-2.0
#include <ctime>
#include <string>
#include <utility>
#include <variant>

#include "hvrun_version.h"
#include "launcher/check/probe.h"
#include "launcher/check/report/report_text.h"
#include "launcher/cli/command_line.h"
#include "launcher/commands/check_build.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/fresh_file.h"
#include "launcher/commands/prepared_job.h"
#include "launcher/picture/report_html.h"
#include "launcher/supervise/supervisor.h"
#include "src/base/error.h"

namespace hv::launcher {
namespace {

// Some options of a job have no meaning here: a check writes no files of ranks, and each of its
// steps has a limit of its own.
JobSpec spec_of_check(JobSpec spec) {
  spec.output.output_directory.clear();
  spec.output.summary_file.clear();
  spec.ending.timeout.reset();
  return spec;
}

// "hvrun 0.1.0, 2026-12-01 09:30 UTC": by what and when a page or picture was made.
std::string version_and_date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char date[32] = "";
  ::gmtime_r(&now, &parts);
  std::strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &parts);
  return std::string("hvrun ") + HVRUN_VERSION_TEXT + ", " + date;
}

}  // namespace

int check_job(const PreparedJob& job) {
  const JobSpec spec = spec_of_check(job.spec);
  FreshFile page("--topology-html", spec.report.topology_html);
  FreshFile picture("--topology-svg", spec.report.topology_svg);
  const CheckOutcome outcome = check_hosts(spec, job.hosts, job.environment, job.ranks);
  if (outcome.exit_code != 0) return outcome.exit_code;
  const CheckReport report = judge(outcome.input);
  if (spec.report.format == PlanFormat::kJson)
    print_text(report_as_json(outcome.input, report));
  else
    print_report(report_as_text(outcome.input, report));
  if (!spec.report.topology_html.empty())
    page.write(report_as_html(outcome.input, report, version_and_date()));
  if (!spec.report.topology_svg.empty())
    picture.write(report_as_svg(outcome.input, version_and_date()));
  return report.can_start() ? 0 : static_cast<int>(ErrorKind::kStart);
}

int run_check(const std::vector<std::string>& words, const Environment& environment) {
  CommandLine command = parse_check_line(words, environment,
                                         [&environment] { return current_directory(environment); });
  if (const auto* text = std::get_if<PrintCommand>(&command)) return print_text(text->text);
  if (std::holds_alternative<CheckBuildCommand>(command)) return print_check_build(environment);
  return check_job(prepare_job(std::get<LaunchCommand>(std::move(command)), environment));
}

}  // namespace hv::launcher
