// hvrun's command line: a word a line; lines "NAME=VALUE" before the first empty one are the
// environment.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "launcher/allocation/host_expression.h"
#include "launcher/cli/command_line.h"
#include "launcher/commands/env_command.h"
#include "launcher/commands/explain_command.h"
#include "launcher/commands/script_command.h"
#include "launcher/plan/common_environment.h"
#include "launcher/plan/launch_plan.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::launcher;

namespace {

void check_programs(const JobSpec& spec, const std::vector<std::string>& words) {
  HV_CHECK(!spec.programs.empty(), "a program");
  long ranks = 0;
  for (const ProgramSpec& program : spec.programs) {
    HV_CHECK(!program.argv.empty() && program.argv.size() <= words.size(), "a program's words");
    HV_CHECK(!program.working_directory.empty() && program.working_directory[0] == '/', "absolute");
    ranks += program.ranks;
  }
  HV_CHECK(spec.programs.size() == 1 || ranks == spec.ranks, "several programs have all ranks");
  const std::vector<std::string>& last = spec.programs.back().argv;
  const bool ends_in_colon = words.back() == ":" && last.back() != ":";
  HV_CHECK(!ends_in_colon && std::equal(last.rbegin(), last.rend(), words.rbegin()),
           "the last program and its arguments are the last words, as they were");
}

void check_values(const JobSpec& spec) {
  HV_CHECK(!spec.ranks || (*spec.ranks >= 1 && *spec.ranks <= kMostRanks), "-np within bounds");
  HV_CHECK(spec.environment.master_port >= 0 && spec.environment.master_port <= 65535, "a port");
  HV_CHECK(spec.ending.lost_after >= std::chrono::milliseconds(500),
           "time enough to tell lost from busy");
  for (const Duration time : {spec.access.start_timeout, spec.ending.grace.value_or(Duration(0)),
                              spec.ending.timeout.value_or(Duration(0))})
    HV_CHECK(time >= Duration::zero() && time <= std::chrono::hours(300000),
             "a time within bounds");
  HV_CHECK(spec.placement.gpus_per_rank >= 1 && spec.placement.gpus_per_rank <= 1024,
           "GPUs of a rank");
}

// What follows from the command line before any host is asked.
void plan(const JobSpec& spec, const Environment& environment) {
  (void)common_environment(spec, environment);
  if (!spec.hosts.hostfile.empty() || spec.ranks.value_or(1) > 10000) return;
  const std::string& hosts = spec.hosts.hosts;
  const HostList list = hosts.empty() ? HostList{{}, true} : parse_host_expression(hosts);
  std::size_t slots = 0;
  for (const HostEntry& entry : list.entries)
    slots += static_cast<std::size_t>(entry.slots.value_or(1));
  if (slots > 10000) return;  // nothing more is learned from long plans
  const std::vector<std::optional<HostFacts>> facts(std::max<std::size_t>(1, list.entries.size()));
  const LaunchPlan plan = make_plan(spec, list, facts);
  for (const PlannedRank& rank : plan.ranks) {
    HV_CHECK(rank.host >= 0 && rank.host < static_cast<int>(plan.hosts.size()), "a planned host");
    HV_CHECK(rank.identity.size == static_cast<int>(plan.ranks.size()), "of one size");
  }
}

void check_launch(const std::vector<std::string>& words, const Environment& environment) {
  const CommandLine line = parse_command_line(words, environment, [] { return "/here"; });
  if (const auto* launch = std::get_if<LaunchCommand>(&line)) {
    check_programs(launch->spec, words);
    check_values(launch->spec);
    plan(launch->spec, environment);
  } else if (const auto* text = std::get_if<PrintCommand>(&line)) {
    HV_CHECK(!text->text.empty(), "a text");
  }
}

void check_check(const std::vector<std::string>& words, const Environment& environment) {
  const CommandLine line = parse_check_line(words, environment, [] { return "/here"; });
  const auto* check = std::get_if<LaunchCommand>(&line);
  if (!check) return;
  HV_CHECK(check->spec.report.dry_run == DryRun::kHosts, "a dry run");
  check_values(check->spec);
}

void check_env(const std::vector<std::string>& words, const Environment& environment) {
  const bool shows = parse_env_command(words).form == EnvCommand::Form::kAlgorithms;
  const std::string table = shows ? env_algorithms(environment) : env_text(env_table(environment));
  HV_CHECK(!table.empty(), "a table");
}

// The site's file is read later, and is the target site's.
void check_script(const std::vector<std::string>& words, const Environment& environment) {
  const auto parsed = parse_script_command(words, environment, [] { return "/here"; });
  const auto* found = std::get_if<ScriptCommand>(&parsed);
  HV_CHECK(found || !std::get<PrintCommand>(parsed).text.empty(), "a text");
  if (!found) return;
  const ScriptCommand& script = *found;
  if (script.lists_sites || script.shows_site) return;
  const std::vector<std::string>& program = script.request.program;
  HV_CHECK(!program.empty() && program.size() <= words.size() &&
               std::equal(program.rbegin(), program.rend(), words.rbegin()),
           "the program and its arguments are the last words, as they were");
  for (const std::string& word : script.request.hvrun.typed)
    HV_CHECK(word.find_first_of("\r\n") == std::string::npos, "a word of one line");
  HV_CHECK(!script.site.empty(), "a site");
}

// As main does: the first word may name a subcommand.
void run(const std::vector<std::string>& words, const Environment& environment) {
  const std::string name = words.empty() ? "" : words[0];
  const std::vector<std::string> behind(words.begin() + (words.empty() ? 0 : 1), words.end());
  if (name == "env") {
    check_env(behind, environment);
  } else if (name == "script") {
    check_script(behind, environment);
  } else if (name == "explain") {
    (void)parse_explain_command(behind);
  } else if (name == "check") {
    check_check(behind, environment);
  } else {
    check_launch(words, environment);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::view(data, size);
  const std::size_t gap = std::min(text.find("\n\n"), text.size());
  // As in argv and environ: no word holds a zero byte.
  std::vector<std::string> words = split(text.substr(std::min(gap + 2, text.size())), '\n');
  for (std::string& word : words) word = word.substr(0, word.find('\0'));
  const Environment environment = Environment::from_entries(split(text.substr(0, gap), '\n'));
  try {
    run(words, environment);
  } catch (const Error& error) {
    HV_CHECK(error.kind() == ErrorKind::kUsage && *error.what() != '\0', "the user's mistake");
  }
  return 0;
}
