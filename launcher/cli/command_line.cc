// SPDX-License-Identifier: Apache-2.0
#include "launcher/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>

#include "hvrun_version.h"
#include "launcher/allocation/host_words.h"
#include "launcher/cli/knobs.h"
#include "launcher/cli/option_groups.h"
#include "launcher/cli/option_parsing.h"
#include "launcher/cli/option_values.h"
#include "launcher/cli/program_search.h"
#include "launcher/plan/common_environment.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/plan/nested_launcher.h"
#include "src/base/bounded_seconds.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "src/contract/contract.h"

namespace hv::launcher {
namespace {

constexpr int kMostDescriptor = (1 << 30) - 1;  // the kernel's own limit is below
constexpr int kMostRestarts = 10000;

std::string groups_text(const CLI::App& app) {
  const auto formatter = std::dynamic_pointer_cast<CLI::Formatter>(app.get_formatter());
  std::string groups = formatter->make_groups(&app, CLI::AppFormatMode::Normal);
  for (std::size_t at; (at = groups.find("\n\n\n")) != std::string::npos;) groups.erase(at, 1);
  groups.erase(groups.find_last_not_of('\n') + 1);
  // These options take a value after '=' only; CLI11's formatter prints a blank instead. The column
  // stays.
  for (const std::string option : {"--dry-run", "--stdin", "--wire-mpi"})
    if (const std::size_t at = groups.find(option + " ="); at != std::string::npos) {
      const std::size_t blank = groups.find_first_of(" \n", at + option.size() + 1);
      groups.insert(blank, groups[blank] == ' ' ? " " : "");
      groups.erase(at + option.size(), 1);
    }
  return groups;
}

// Shows only the options that a check uses.
std::string check_help_text(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::string& group = option->get_group();
    const std::string name = option->get_name();
    const bool is_used = group == "Ranks and hosts" || group == "Placement" ||
                         group == "Reaching hosts" || name.starts_with("--topology") ||
                         name == "--format" || name == "--verbose" || name == "--help";
    if (!is_used) option->group("");
  }
  return "hvrun check: would jobs start on these hosts, and run well? It starts no rank\n\n"
         "Usage: hvrun check -H hosts [options]\n"
         "Exit code: 0, or 3 where a job could not start\n" +
         groups_text(app) +
         "\n\nExamples:\n"
         "  hvrun check -H node[1-8]\n"
         "  hvrun check --hostfile hosts --topology-html hosts.html\n"
         "\nhvrun's other options are taken, too; with a program: hvrun --dry-run PROGRAM\n"
         "More: man hvrun-check\n";
}

std::string help_text(const CLI::App& app) {
  return "hvrun: start one process per GPU on one or many hosts, and end them all together\n\n"
         "Usage: hvrun [options] [--] program [arguments]\n"
         "       hvrun [options] -np N program : -np M program ...\n"
         "       hvrun script [options] [--] program [arguments]\n"
         "                                    the job script for Slurm, PBS or LSF\n"
         "       hvrun check -H hosts         would jobs start on these hosts, and run well?\n"
         "       hvrun explain DIR            why a job ended as it did, from its --output-dir\n"
         "       hvrun env                    every knob, its value and where that came from\n"
         "       hvrun env --format json      that, and which backends and frameworks are here\n"
         "       hvrun env --algorithms       which algorithm carries out which collective\n" +
         groups_text(app) +
         "\n\nExamples:\n"
         "  hvrun -np 4 ./train                     four ranks on this machine\n"
         "  hvrun -np 4 -H node1:2,node2:2 ./train  two hosts, over SSH\n"
         "  hvrun --hostfile hosts ./train          one rank per slot of the file's hosts\n"
         "  hvrun --dry-run=offline -np 4 -H node1:2,node2:2 ./train\n"
         "\nOptions of horovodrun are understood, too.\nMore: man hvrun, man hvrun-env\n";
}

PlacementSpec placement_of(const CLI::App& app, const RawPlacement& raw, bool has_rankfile) {
  PlacementSpec placement;
  placement.map_by =
      need(parse_map_by(raw.map_by), "--map-by", raw.map_by, "slot, node, gpu, numa or ppr:N:node");
  if (!raw.npernode.empty()) {
    if (app.count("--map-by") > 0)
      throw Error(ErrorKind::kUsage, "both --map-by and --npernode place ranks",
                  "give one of them; --npernode N is --map-by ppr:N:node");
    placement.map_by = {MapBy::kPerNode,
                        parse_number_in("--npernode", raw.npernode, 1, kMostSlotsPerHost)};
  }
  if (has_rankfile &&
      (app.count("--map-by") + app.count("--rank-by") + app.count("--npernode") > 0))
    throw Error(ErrorKind::kUsage,
                "--rankfile says where every rank is, and so does another option",
                "leave out --map-by, --rank-by and --npernode, or the rankfile");
  if (!raw.rank_by.empty())
    placement.rank_by = need(parse_rank_by(raw.rank_by), "--rank-by", raw.rank_by, "slot or node");
  if (!raw.gpus_per_rank.empty())
    placement.gpus_per_rank = parse_number_in("--gpus-per-rank", raw.gpus_per_rank, 1, 1024);
  placement.gpus_are_asked_for = !raw.gpus_per_rank.empty();
  placement.oversubscribe = raw.oversubscribe;
  if (!raw.bind_to.empty())
    placement.bind_to =
        need(parse_bind_to(raw.bind_to), "--bind-to", raw.bind_to, "none, core, numa or gpu");
  if (raw.gpu_bind != "all" && raw.gpu_bind != "visible")
    need(std::optional<bool>(), "--gpu-bind", raw.gpu_bind, "all or visible");
  // With one GPU a rank finds its own by its local rank; with several it cannot.
  const bool is_default = app.count("--gpu-bind") == 0;
  placement.sees_only_its_gpus =
      raw.gpu_bind == "visible" || (is_default && placement.gpus_per_rank > 1);
  placement.nic_bind = raw.nic_bind;
  return placement;
}

SpawnerChoice spawner_of(const CLI::App& app, const RawAccess& raw) {
  if (app.count("--spawner") == 0) return SpawnerChoice::kAuto;
  if (raw.spawner == "ssh") return SpawnerChoice::kSsh;
  if (raw.spawner != "srun") need(std::optional<bool>(), "--spawner", raw.spawner, "ssh or srun");
  for (const char* option : {"--rsh", "--ssh-port", "--ssh-user", "--ssh-identity-file"})
    if (app.count(option) > 0)
      throw Error(ErrorKind::kUsage,
                  std::string(option) +
                      " says how SSH reaches hosts, and --spawner srun that it "
                      "does not",
                  "leave one of them out");
  return SpawnerChoice::kSrun;
}

AccessSpec access_of(const CLI::App& app, const RawAccess& raw) {
  AccessSpec access;
  if (!raw.ssh_port.empty())
    access.ssh_port =
        static_cast<std::uint16_t>(parse_number_in("--ssh-port", raw.ssh_port, 1, 65535));
  access.ssh_user = raw.ssh_user;
  access.ssh_identity_file = raw.ssh_identity_file;
  access.ssh_accept_new = raw.ssh_accept_new;
  access.remote_shell = raw.remote_shell;
  access.spawner = spawner_of(app, raw);
  access.start_timeout = parse_duration("--start-timeout", raw.start_timeout);
  return access;
}

WireMpi wire_mpi_of(const CLI::App& app, const RawEnvironment& raw) {
  if (app.count("--wire-mpi") == 0) return WireMpi::kAuto;
  if (raw.wire_mpi.empty()) return WireMpi::kBoth;
  if (raw.wire_mpi == "pmix") return WireMpi::kPmix;
  if (raw.wire_mpi == "pmi") return WireMpi::kPmi;
  if (raw.wire_mpi != "none")
    need(std::optional<bool>(), "--wire-mpi", raw.wire_mpi, "pmix, pmi or none, or no value");
  if (raw.mpi)
    throw Error(ErrorKind::kUsage,
                "--mpi has MPI move the data, and --wire-mpi=none keeps ranks from finding each "
                "other by it",
                "leave one of them out");
  return WireMpi::kNone;
}

// An exported MASTER_PORT counts as the option, but for --clean-env, and for the port of an outer
// hvrun's job.
int master_port_of(const RawEnvironment& raw, const Environment& own) {
  const auto parse = [](const char* name, const std::string& text) {
    return parse_number_in(name, text, 1, 65535);
  };
  if (!raw.master_port.empty()) return parse("--master-port", raw.master_port);
  const auto exported = own.get_filled(kMasterPort);
  if (!exported || raw.clean_environment || has_contract(own)) return 0;
  return parse(kMasterPort, *exported);
}

EnvironmentSpec environment_of(const CLI::App& app, const RawEnvironment& raw,
                               const Environment& own) {
  EnvironmentSpec environment;
  environment.exports = parse_exports(raw.exports);
  environment.clean_environment = raw.clean_environment;
  environment.master_port = master_port_of(raw, own);
  environment.hold_port = !raw.no_hold_port;
  environment.wire_mpi = wire_mpi_of(app, raw);
  environment.mpi_first = raw.mpi;
  environment.horovod_names = raw.horovod_names;
  return environment;
}

void check_label(const CLI::App& app, const RawOutput& raw) {
  if (raw.label != "rank" && raw.label != "host")
    need(std::optional<bool>(), "--label", raw.label,
         "rank or host; lines are labelled without it");
  if (raw.no_label && app.count("--label") > 0)
    throw Error(ErrorKind::kUsage, "--label says what is before each line, and --no-label nothing",
                "leave one of them out");
}

OutputSpec output_of(const CLI::App& app, const RawOutput& raw) {
  check_label(app, raw);
  OutputSpec output;
  output.label = !raw.no_label;
  output.label_has_host = raw.label == "host";
  output.training_summary = !raw.no_training_summary;
  output.timestamp = raw.timestamp;
  if (!raw.shown_ranks.empty())
    output.shown_ranks = parse_ranges("--ranks", raw.shown_ranks, kMostRanks - 1);
  output.output_directory = raw.output_directory;
  if (app.count("--stdin") > 0)
    output.stdin_rank =
        raw.stdin_rank.empty() ? 0 : parse_number_in("--stdin", raw.stdin_rank, 0, kMostRanks - 1);
  if (app.count("--result-fd") > 0)
    output.result_fd = parse_number_in("--result-fd", raw.result_fd, 3, kMostDescriptor);
  output.pty = raw.pty;
  output.summary_file = raw.summary_file;
  return output;
}

EndingSpec ending_of(const RawEnding& raw) {
  EndingSpec ending;
  if (!raw.grace.empty()) ending.grace = parse_duration("--grace", raw.grace);
  ending.lost_after = parse_duration("--lost-after", raw.lost_after);
  if (!raw.timeout.empty()) ending.timeout = parse_duration("--timeout", raw.timeout);
  if (ending.timeout && *ending.timeout <= Duration::zero())
    throw Error(ErrorKind::kUsage, "--timeout " + printable(raw.timeout) + " leaves no time to run",
                "leave it out where the job may run as long as it takes");
  if (!raw.restarts.empty())
    ending.restarts = parse_number_in("--restarts", raw.restarts, 0, kMostRestarts);
  return ending;
}

void check_restarts(const JobSpec& spec) {
  if (spec.ending.restarts > 0 && spec.output.stdin_rank)
    throw Error(ErrorKind::kUsage,
                "--restarts starts ranks again, and the input that --stdin hands to a rank can be "
                "read only once",
                "leave one of them out; a file can be named in the program's arguments");
  if (spec.ending.restarts > 0 && spec.output.result_fd)
    throw Error(ErrorKind::kUsage,
                "--restarts starts ranks again, and rank 0 can write to the descriptor of "
                "--result-fd only once",
                "leave one of them out");
}

// `hvrun check` is a dry run that asks the hosts.
DryRun dry_run_of(const CLI::App& app, const RawReport& raw, bool is_check) {
  if (app.count("--dry-run") == 0) return is_check ? DryRun::kHosts : DryRun::kNo;
  if (!raw.dry_run.empty() && raw.dry_run != "offline")
    throw Error(ErrorKind::kUsage, "--dry-run=" + printable(raw.dry_run) + " is not understood",
                "use --dry-run, which asks the hosts, or --dry-run=offline, which connects to "
                "nothing");
  return raw.dry_run.empty() ? DryRun::kHosts : DryRun::kOffline;
}

// Pictures show what the hosts reported.
void check_pictures(const CLI::App& app, const RawReport& raw, DryRun dry_run) {
  for (const char* option : {"--topology-html", "--topology-svg"})
    if (app.count(option) > 0 && dry_run != DryRun::kHosts)
      throw Error(
          ErrorKind::kUsage,
          std::string(option) + " shows what hosts tell in a dry run, and none is asked here",
          "add --dry-run, see 'hvrun check', or leave it out");
  if (!raw.topology_html.empty() && raw.topology_html == raw.topology_svg)
    throw Error(ErrorKind::kUsage,
                "--topology-html and --topology-svg name one file: " + printable(raw.topology_svg),
                "name two files");
}

ReportSpec report_of(const CLI::App& app, const RawReport& raw, bool is_check) {
  if (raw.format != "text" && raw.format != "json")
    throw Error(ErrorKind::kUsage, "--format '" + printable(raw.format) + "' is not understood",
                "expected text or json");
  if (app.count("--format") > 0 && app.count("--dry-run") == 0 && !is_check)
    throw Error(ErrorKind::kUsage, "--format is of the plan, which nothing prints here",
                "add --dry-run, or put --format behind the command: hvrun env --format json");
  ReportSpec report;
  report.dry_run = dry_run_of(app, raw, is_check);
  check_pictures(app, raw, report.dry_run);
  report.format = raw.format == "json" ? PlanFormat::kJson : PlanFormat::kText;
  report.topology_svg = raw.topology_svg;
  report.topology_html = raw.topology_html;
  report.verbose = raw.verbose;
  report.report_bindings = raw.report_bindings;
  return report;
}

JobSpec to_spec(const CLI::App& app, const RawOptions& raw, bool is_check,
                std::vector<std::string> program, const Environment& environment,
                const std::function<std::string()>& current_directory) {
  refuse_empty_values(app);
  JobSpec spec;
  if (!raw.np.empty()) spec.ranks = parse_number_in("-np", raw.np, 1, kMostRanks);
  spec.hosts = raw.hosts;
  spec.placement = placement_of(app, raw.placement, !raw.hosts.rankfile.empty());
  spec.access = access_of(app, raw.access);
  spec.environment = environment_of(app, raw.environment, environment);
  spec.programs.push_back({std::move(program), absolute(raw.working_directory, current_directory)});
  spec.names_working_directory = !raw.working_directory.empty();
  spec.output = output_of(app, raw.output);
  spec.ending = ending_of(raw.ending);
  check_restarts(spec);
  spec.report = report_of(app, raw.report, is_check);
  return spec;
}

// A dry run waits no longer than kProbeTimeout for a driver, unless the user sets the knob.
Duration inventory_timeout(DryRun dry_run, const Environment& environment) {
  constexpr const char* kKnob = "HVRUN_INVENTORY_TIMEOUT";
  const Duration time = bounded_seconds(KnobReader(launcher_knobs(), environment).seconds(kKnob));
  const bool is_set = environment.get_filled(kKnob).has_value();
  return dry_run == DryRun::kNo || is_set ? time : std::min(time, kProbeTimeout);
}

bool is_variable_name(std::string_view text) {
  const auto is_in_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::all_of(text.begin(), text.end(), is_in_name);
}

// "NAME=VALUE program", as a shell takes it.
void refuse_assignment(const std::vector<std::string>& argv, bool has_hosts) {
  if (argv.empty()) return;
  const std::size_t equals = argv[0].find('=');
  if (equals == std::string::npos || !is_variable_name(argv[0].substr(0, equals))) return;
  if (has_hosts && is_host_setting(argv[0].substr(0, equals)))
    throw Error(ErrorKind::kUsage,
                "'" + printable(argv[0]) +
                    "' stands where the program is expected, and -H takes "
                    "names and slots only",
                "a hostfile (--hostfile) with a line such as 'node1 " + printable(argv[0]) +
                    "'; -x " + printable(argv[0]) + " sets a variable for the ranks");
  throw Error(ErrorKind::kUsage,
              "'" + printable(argv[0]) + "' stands where the program is expected",
              "-x " + printable(argv[0]) + " sets the variable for the ranks; './" +
                  printable(argv[0]) + "' is a program of that name");
}

void check_limits(const RawOptions& raw, const JobSpec& spec, bool is_check) {
  if (spec.ending.lost_after < std::chrono::duration<double>(kLeastLostAfterSeconds)) {
    throw Error(ErrorKind::kUsage,
                "--lost-after " + raw.ending.lost_after +
                    " is too short to tell a busy host from a lost one",
                "at least 0.5 s");
  }
  if (spec.programs[0].argv.empty() && !is_check) {
    throw Error(ErrorKind::kUsage, "no program to run",
                "hvrun [options] program [arguments]; 'hvrun --help' explains");
  }
  if (spec.output.summary_file == "-") {
    throw Error(ErrorKind::kUsage,
                "--summary - would write to standard output, which is the ranks'",
                "name a file, or ./- for one of that name");
  }
}

// `hvrun check` is --dry-run without a program.
void refuse_in_check(const CLI::App& app, const SplitWords& split) {
  if (!split.program.empty())
    throw Error(ErrorKind::kUsage,
                "'hvrun check' takes no program, and '" + printable(split.program[0]) + "' is one",
                "hvrun --dry-run, with the program and the same options; to run a program called "
                "check: hvrun -- check");
  if (app.count("--dry-run") > 0)
    throw Error(ErrorKind::kUsage, "'hvrun check' is a dry run by itself",
                "leave --dry-run out, or name a program: hvrun --dry-run PROGRAM");
}

// Defaults from the environment, such as a site's; options overwrite them.
RawOptions defaults_from(const Environment& environment) {
  const KnobReader knobs(launcher_knobs(), environment);
  knobs.check_all();
  RawOptions raw;
  raw.access.remote_shell = knobs.text("HVRUN_RSH");
  raw.access.start_timeout = knobs.value("HVRUN_START_TIMEOUT").text;
  const KnobValue grace = knobs.value("HVRUN_GRACE");
  if (grace.origin != "default") raw.ending.grace = grace.text;
  raw.ending.lost_after = knobs.value("HVRUN_LOST_AFTER").text;
  return raw;
}

CommandLine parse_words(const std::vector<std::string>& words, bool is_check,
                        const Environment& environment,
                        const std::function<std::string()>& current_directory) {
  CLI::App app;
  RawOptions raw = defaults_from(environment);
  HorovodOptions horovod_options;
  add_options(app, raw);
  horovod_options.add_to(app);
  SplitWords split = split_at_program(words, shapes_of(app));
  const std::vector<std::string> options = typed_options(words, split);
  std::vector<std::string> later_programs = cut_at_colon(&split);
  parse_options(app, split.options, "'hvrun --help' lists the options");
  if (raw.help) return PrintCommand{is_check ? check_help_text(app) : help_text(app)};
  if (raw.version) return PrintCommand{std::string("hvrun ") + HVRUN_VERSION_TEXT + "\n"};
  if (raw.check_build) return CheckBuildCommand{};
  if (is_check) refuse_in_check(app, split);
  JobSpec spec =
      to_spec(app, raw, is_check, std::move(split.program), environment, current_directory);
  check_limits(raw, spec, is_check);
  spec.access.inventory_timeout = inventory_timeout(spec.report.dry_run, environment);
  spec.ending.restart_delay =
      bounded_seconds(KnobReader(launcher_knobs(), environment).seconds("HVRUN_RESTART_DELAY"));
  add_programs(&spec, parse_more_programs(std::move(later_programs),
                                          spec.programs[0].working_directory, current_directory));
  for (const ProgramSpec& program : spec.programs)
    refuse_assignment(program.argv, !spec.hosts.hosts.empty());
  spec.allows_nested = raw.nested;
  refuse_nested_launchers(spec, options, is_in_scheduler_job(environment));
  HorovodSettings horovod = horovod_options.settings();
  Exports exports = horovod.variables;
  exports.add_all(spec.environment.exports);  // later: -x beats horovodrun's options
  spec.environment.exports = std::move(exports);
  return LaunchCommand{std::move(spec), std::move(horovod)};
}

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& words,
                               const Environment& environment,
                               const std::function<std::string()>& current_directory) {
  return parse_words(words, false, environment, current_directory);
}

CommandLine parse_check_line(const std::vector<std::string>& words, const Environment& environment,
                             const std::function<std::string()>& current_directory) {
  return parse_words(words, true, environment, current_directory);
}

}  // namespace hv::launcher
