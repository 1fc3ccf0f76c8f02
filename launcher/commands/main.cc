// hvrun: the program. Reads the world once, and hands it on as values.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "launcher/allocation/allocate.h"
#include "launcher/allocation/scheduler.h"
#include "launcher/check/probe.h"
#include "launcher/check/report/report_text.h"
#include "launcher/cli/command_line.h"
#include "launcher/cli/knobs.h"
#include "launcher/commands/check_build.h"
#include "launcher/commands/env_command.h"
#include "launcher/commands/explain_command.h"
#include "launcher/commands/fresh_file.h"
#include "launcher/commands/script_command.h"
#include "launcher/facts/facts.h"
#include "launcher/picture/report_html.h"
#include "launcher/plan/mpi_wires.h"
#include "launcher/plan/plan_text.h"
#include "launcher/plan/rank_environment.h"
#include "launcher/spawn/go_between.h"
#include "launcher/supervise/supervisor.h"
#include "src/base/error.h"
#include "src/base/knob.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/contract/runtime_knobs.h"
#include "src/process/birth.h"
#include "src/process/command.h"

namespace hv::launcher {
namespace {

std::string current_directory() {
  char path[PATH_MAX];
  if (!::getcwd(path, sizeof path)) {
    throw Error(ErrorKind::kUsage, "find the current directory: " + errno_text(errno),
                "change to one that exists, or name the ranks' with --wdir");
  }
  return path;
}

int print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
    return 0;
  const int error = errno;
  throw Error(ErrorKind::kStart, "write to standard output: " + errno_text(error),
              error == ENOSPC || error == EDQUOT
                  ? "free some space, or send it elsewhere ('hvrun ... | less')"
                  : "see where standard output leads, or send it elsewhere ('hvrun ... | less')");
}

void warn(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) std::fprintf(stderr, "hvrun: warning: %s\n", line.c_str());
}

// What of the plan is known without asking any host but this one.
int print_offline_plan(const JobSpec& spec, const HostList& list, const Environment& environment) {
  std::vector<std::optional<HostFacts>> facts(list.this_machine ? 1 : list.entries.size());
  if (list.this_machine) facts[0] = host_facts(gather_facts(environment));
  const LaunchPlan plan = make_plan(spec, list, facts);
  warn(plan.warnings);
  return print(spec.format == PlanFormat::kJson ? plan_as_json(spec, plan)
                                                : plan_as_text(spec, plan));
}

bool is_on_path(const std::string& program, const Environment& environment) {
  std::string reason;
  return !find_program(program, environment.get_or("PATH", ""), "/", &reason).empty();
}

bool is_ssh_meant(const JobSpec& spec) {
  return !spec.remote_shell.empty() || !spec.ssh_user.empty() || !spec.ssh_identity_file.empty() ||
         spec.ssh_port != 0;
}

// In a Slurm job its own way of starting processes reaches all nodes, and SSH often none.
void choose_spawner(const HostList& list, const Environment& environment, JobSpec* spec) {
  const bool can_be_srun = are_nodes_of_slurm_job(list, environment);
  if (spec->spawner != SpawnerChoice::kSsh && !is_ssh_meant(*spec))
    refuse_strangers_to_slurm_job(list, environment);
  if (spec->spawner == SpawnerChoice::kSrun && !can_be_srun)
    throw Error(ErrorKind::kUsage,
                "--spawner srun reaches the nodes of a Slurm job, and not all of these hosts are "
                "nodes of one in which hvrun runs",
                "run hvrun inside sbatch or salloc, and leave out -H and --hostfile");
  if (spec->spawner == SpawnerChoice::kByItself && can_be_srun && !is_ssh_meant(*spec) &&
      is_on_path("srun", environment))
    spec->spawner = SpawnerChoice::kSrun;
}

// Of a job's options some have no meaning: nothing is written for ranks that are not started, and
// each step has a limit of its own.
JobSpec spec_of_check(JobSpec spec) {
  spec.output_directory.clear();
  spec.summary_file.clear();
  spec.timeout.reset();
  return spec;
}

int check(const JobSpec& asked, const HostList& list, const Environment& environment) {
  const JobSpec spec = spec_of_check(asked);
  FreshFile page("--topology-html", spec.topology_html);
  FreshFile picture("--topology-svg", spec.topology_svg);
  const CheckOutcome outcome = check_hosts(spec, list, environment);
  if (outcome.exit_code != 0) return outcome.exit_code;
  const CheckReport report = judge(outcome.input);
  print(spec.format == PlanFormat::kJson ? report_as_json(outcome.input, report)
                                         : report_as_text(outcome.input, report));
  if (!spec.topology_html.empty()) page.write(report_as_html(outcome.input, report));
  if (!spec.topology_svg.empty()) picture.write(report_as_svg(outcome.input));
  return report.can_start() ? 0 : static_cast<int>(ErrorKind::kStart);
}

int launch(LaunchCommand command, Environment environment) {
  JobSpec& spec = command.spec;
  warn(command.horovod.warnings);
  for (const std::string& variable : command.horovod.variables) {
    const std::size_t equals = variable.find('=');
    environment.set(variable.substr(0, equals), variable.substr(equals + 1));
  }
  spec.hosts.way_is_stated = is_ssh_meant(spec) || spec.spawner != SpawnerChoice::kByItself;
  const HostList list = find_hosts(spec.hosts, environment).list;
  choose_spawner(list, environment, &spec);
  if (spec.mpi_first) warn(put_mpi_first(environment, &spec));
  warn(ignored_variables(spec, environment));
  warn(unmatched_exports(spec, environment));
  if (spec.dry_run == DryRun::kOffline) return print_offline_plan(spec, list, environment);
  check_stated_slots(spec, list);
  configure_log(spec.verbose ? LogLevel::kInfo : LogLevel::kWarn, "hvrun");
  if (spec.dry_run == DryRun::kHosts) return check(spec, list, environment);
  return supervise_job(spec, list, environment);
}

// Print the whole table first: it makes a malformed value easy to fix.
int print_env(const Environment& environment, EnvCommand::Form form) {
  const EnvTable table = env_table(environment);
  const BuildFacts facts = gather_build_facts(environment);
  const bool is_json = form == EnvCommand::Form::kJson;
  const int code = print(is_json ? env_json(table, facts) : env_text(table) + backends_text(facts));
  if (table.trouble) throw Error(*table.trouble);
  return code;
}

// Print first, then report a malformed HVRUN_BACKEND: the listing helps to correct it.
int check_build(const Environment& environment) {
  const int code = print(check_build_text(gather_build_facts(environment)));
  KnobReader(runtime_knobs(), environment).text("HVRUN_BACKEND");
  return code;
}

std::vector<std::string> words_after(const std::vector<std::string>& words) {
  return {words.begin() + 1, words.end()};
}

int run_env(const std::vector<std::string>& words, const Environment& environment) {
  const EnvCommand command = parse_env_command(words);
  return command.form == EnvCommand::Form::kAlgorithms ? print(env_algorithms(environment))
                                                       : print_env(environment, command.form);
}

int run_explain(const std::vector<std::string>& words) {
  const auto command = parse_explain_command(words);
  if (const auto* text = std::get_if<PrintCommand>(&command)) return print(text->text);
  return print(explanation(std::get<ExplainCommand>(command)));
}

int run_script(const std::vector<std::string>& words, const Environment& environment) {
  const auto parsed = parse_script_command(words, environment, current_directory);
  if (const auto* text = std::get_if<PrintCommand>(&parsed)) return print(text->text);
  const auto& command = std::get<ScriptCommand>(parsed);
  const std::string text = text_of_script(command, environment, current_directory);
  if (command.file.empty()) return print(text);
  save_script(command, text);
  std::fprintf(stderr, "hvrun: %s is written; submit it by: %s\n", command.file.c_str(),
               how_to_submit(command, environment).c_str());
  return 0;
}

int run(const std::vector<std::string>& words) {
  const Environment environment = Environment::of_process();
  const std::string name = words.empty() ? "" : words[0];
  if (name == "env") return run_env(words_after(words), environment);
  if (name == "script") return run_script(words_after(words), environment);
  if (name == "explain") return run_explain(words_after(words));
  const CommandLine command =
      name == "check" ? parse_check_line(words_after(words), environment, current_directory)
                      : parse_command_line(words, environment, current_directory);
  if (const auto* text = std::get_if<PrintCommand>(&command)) return print(text->text);
  if (std::holds_alternative<CheckBuildCommand>(command)) return check_build(environment);
  return launch(std::get<LaunchCommand>(command), environment);
}

}  // namespace
}  // namespace hv::launcher

int main(int argc, char** argv) {
  hv::open_missing_streams();
  hv::raise_open_file_limit();
  hv::unblock_signals();
  hv::keep_freed_memory();
  // Inherited as ignored it would take the status of children away.
  std::signal(SIGCHLD, SIG_DFL);
  int code = 0;
  try {
    code = hv::launcher::run({argv + 1, argv + argc});
  } catch (const hv::Error& error) {
    std::fprintf(stderr, "hvrun: error: %s\n", error.what());
    if (!error.hint().empty()) std::fprintf(stderr, "  try: %s\n", error.hint().c_str());
    code = static_cast<int>(error.kind());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hvrun: error: %s\n", error.what());
    code = static_cast<int>(hv::ErrorKind::kStart);
  }
  hv::launcher::end_go_betweens();
  // A thread may be blocked for good in a read of stdin or a write to a reader that stands still.
  std::fflush(nullptr);
  ::_exit(code);
}
