// hvrun [options] program: starts a job, or prints its plan, or checks its hosts (--dry-run).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <variant>

#include "launcher/cli/command_line.h"
#include "launcher/commands/check_build.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/prepared_job.h"
#include "launcher/facts/facts.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/plan/plan_text.h"
#include "launcher/supervise/hosts/host_steps.h"
#include "launcher/supervise/supervisor.h"
#include "src/net/interfaces.h"

namespace hv::launcher {
namespace {

// The part of the plan that is known without asking other hosts.
int print_offline_plan(const PreparedJob& job) {
  const HostList& list = job.hosts;
  std::vector<std::optional<HostFacts>> facts(list.this_machine ? 1 : list.entries.size());
  const std::vector<HostTarget> targets = targets_of(job.spec, list, own_hostname());
  for (std::size_t i = 0; i < targets.size(); ++i)
    if (targets[i].is_local || list.is_this_machine_by_name)
      facts[i] = host_facts(gather_facts(job.environment));
  const LaunchPlan plan = make_plan(job.spec, list, facts);
  print_warnings(plan.warnings);
  if (job.spec.report.format == PlanFormat::kJson) return print_text(plan_as_json(job.spec, plan));
  return print_report(plan_as_text(job.spec, plan));
}

// Subcommands of other tools. hvrun runs such a first word as a program.
constexpr const char* kForeignCommands[] = {"attach", "clean",  "completion", "job",
                                            "launch", "list",   "ps",         "run",
                                            "start",  "status", "stop",       "submit"};

void warn_of_foreign_command(const std::vector<std::string>& words) {
  if (words.empty() || std::ranges::find(kForeignCommands, words[0]) == std::end(kForeignCommands))
    return;
  print_warnings({"'" + words[0] +
                  "' is run as a program: hvrun has no command of that name ('hvrun --help' lists "
                  "its commands; 'hvrun -- " +
                  words[0] + "' says that the program is meant)"});
}

}  // namespace

int run_launch(const std::vector<std::string>& words, const Environment& environment) {
  CommandLine command = parse_command_line(
      words, environment, [&environment] { return current_directory(environment); });
  if (const auto* text = std::get_if<PrintCommand>(&command)) return print_text(text->text);
  if (std::holds_alternative<CheckBuildCommand>(command)) return print_check_build(environment);
  warn_of_foreign_command(words);
  const PreparedJob job = prepare_job(std::get<LaunchCommand>(std::move(command)), environment);
  if (job.spec.report.dry_run == DryRun::kOffline) return print_offline_plan(job);
  if (job.spec.report.dry_run == DryRun::kHosts) return check_job(job);
  return supervise_job(job.spec, job.hosts, job.environment, job.ranks);
}

}  // namespace hv::launcher
