// SPDX-License-Identifier: Apache-2.0
#include "launcher/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "hvrun_version.h"
#include "launcher/cli/knobs.h"
#include "launcher/cli/option_groups.h"
#include "launcher/cli/option_parsing.h"
#include "launcher/cli/option_values.h"
#include "launcher/cli/program_search.h"
#include "launcher/plan/launch_plan.h"
#include "src/base/bounded_seconds.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

std::string groups_text(const CLI::App& app) {
  const auto formatter = std::dynamic_pointer_cast<CLI::Formatter>(app.get_formatter());
  std::string groups = formatter->make_groups(&app, CLI::AppFormatMode::Normal);
  for (std::size_t at; (at = groups.find("\n\n\n")) != std::string::npos;) groups.erase(at, 1);
  groups.erase(groups.find_last_not_of('\n') + 1);
  // A value that only '=' introduces, which the formatter does not know of; the column stays.
  for (const std::string option : {"--dry-run", "--wire-mpi"})
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
    const bool is_of_check = group == "Ranks and hosts" || group == "Placement" ||
                             group == "Reaching hosts" || name.starts_with("--topology") ||
                             name == "--format" || name == "--verbose" || name == "--help";
    if (!is_of_check) option->group("");
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
         "       hvrun env --json             that, and which backends and frameworks are here\n"
         "       hvrun env --algorithms       which algorithm carries out which collective\n" +
         groups_text(app) +
         "\n\nExamples:\n"
         "  hvrun -np 4 ./train                     four ranks on this machine\n"
         "  hvrun -np 4 -H node1:2,node2:2 ./train  two hosts, over SSH\n"
         "  hvrun --hostfile hosts ./train          one rank per slot of the file's hosts\n"
         "  hvrun --dry-run=offline -np 4 -H node1:2,node2:2 ./train\n"
         "\nOptions of horovodrun are understood, too.\nMore: man hvrun, man hvrun-env\n";
}

void check_dry_run(const CLI::App& app, const RawOptions& raw, JobSpec* spec) {
  if (app.count("--dry-run") == 0) return;
  if (!raw.dry_run.empty() && raw.dry_run != "offline")
    throw Error(ErrorKind::kUsage, "--dry-run=" + printable(raw.dry_run) + " is not understood",
                "use --dry-run, which asks the hosts, or --dry-run=offline, which connects to "
                "nothing");
  spec->report.dry_run = raw.dry_run.empty() ? DryRun::kHosts : DryRun::kOffline;
}

// Pictures show what the hosts reported.
void take_pictures(const CLI::App& app, const RawOptions& raw, JobSpec* spec) {
  const bool asks_hosts = raw.is_check || spec->report.dry_run == DryRun::kHosts;
  for (const char* option : {"--topology-html", "--topology-svg"})
    if (app.count(option) > 0 && !asks_hosts)
      throw Error(
          ErrorKind::kUsage,
          std::string(option) + " shows what hosts tell in a dry run, and none is asked here",
          "add --dry-run, see 'hvrun check', or leave it out");
  if (!raw.topology_html.empty() && raw.topology_html == raw.topology_svg)
    throw Error(ErrorKind::kUsage,
                "--topology-html and --topology-svg name one file: " + printable(raw.topology_svg),
                "name two files");
  spec->report.topology_html = raw.topology_html;
  spec->report.topology_svg = raw.topology_svg;
}

void take_mapping(const CLI::App& app, const RawOptions& raw, JobSpec* spec) {
  spec->placement.map_by =
      need(parse_map_by(raw.map_by), "--map-by", raw.map_by, "slot, node, gpu, numa or ppr:N:node");
  if (!raw.npernode.empty()) {
    if (app.count("--map-by") > 0)
      throw Error(ErrorKind::kUsage, "both --map-by and --npernode place ranks",
                  "give one of them; --npernode N is --map-by ppr:N:node");
    spec->placement.map_by = {MapBy::kPerNode,
                              parse_number_in("--npernode", raw.npernode, 1, kMostSlotsPerHost)};
  }
  if (!raw.hosts.rankfile.empty() &&
      (app.count("--map-by") + app.count("--rank-by") + app.count("--npernode") > 0))
    throw Error(ErrorKind::kUsage,
                "--rankfile says where every rank is, and so does another option",
                "leave out --map-by, --rank-by and --npernode, or the rankfile");
  if (!raw.rank_by.empty())
    spec->placement.rank_by =
        need(parse_rank_by(raw.rank_by), "--rank-by", raw.rank_by, "slot or node");
  if (!raw.gpus_per_rank.empty())
    spec->placement.gpus_per_rank = parse_number_in("--gpus-per-rank", raw.gpus_per_rank, 1, 1024);
  spec->placement.gpus_are_asked_for = !raw.gpus_per_rank.empty();
  spec->placement.oversubscribe = raw.oversubscribe;
  if (!raw.bind_to.empty())
    spec->placement.bind_to =
        need(parse_bind_to(raw.bind_to), "--bind-to", raw.bind_to, "none, core, numa or gpu");
  if (raw.gpu_bind != "all" && raw.gpu_bind != "visible")
    need(std::optional<bool>(), "--gpu-bind", raw.gpu_bind, "all or visible");
  // A local rank's number says which one is its own only where each has one.
  const bool is_default = app.count("--gpu-bind") == 0;
  spec->placement.sees_only_its_gpus =
      raw.gpu_bind == "visible" || (is_default && spec->placement.gpus_per_rank > 1);
  spec->placement.nic_bind = raw.nic_bind;
  spec->report.report_bindings = raw.report_bindings;
}

void take_spawner(const CLI::App& app, const RawOptions& raw, JobSpec* spec) {
  if (raw.spawner == "ssh") {
    spec->access.spawner = SpawnerChoice::kSsh;
  } else if (raw.spawner == "srun") {
    spec->access.spawner = SpawnerChoice::kSrun;
    for (const char* option : {"--rsh", "--ssh-port", "--ssh-user", "--ssh-identity-file"})
      if (app.count(option) > 0)
        throw Error(ErrorKind::kUsage,
                    std::string(option) +
                        " says how SSH reaches hosts, and --spawner srun that it "
                        "does not",
                    "leave one of them out");
  } else if (app.count("--spawner") > 0) {
    need(std::optional<bool>(), "--spawner", raw.spawner, "ssh or srun");
  }
}

WireMpi wire_mpi_of(const CLI::App& app, const RawOptions& raw) {
  if (app.count("--wire-mpi") == 0) return WireMpi::kByItself;
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

JobSpec to_spec(const CLI::App& app, const RawOptions& raw, std::vector<std::string> program,
                const std::function<std::string()>& current_directory) {
  refuse_empty_values(app);
  JobSpec spec;
  if (!raw.np.empty()) spec.ranks = parse_number_in("-np", raw.np, 1, kMostRanks);
  spec.hosts = raw.hosts;
  take_mapping(app, raw, &spec);
  if (!raw.ssh_port.empty())
    spec.access.ssh_port =
        static_cast<std::uint16_t>(parse_number_in("--ssh-port", raw.ssh_port, 1, 65535));
  spec.access.ssh_user = raw.ssh_user;
  spec.access.ssh_identity_file = raw.ssh_identity_file;
  spec.access.ssh_accept_new = raw.ssh_accept_new;
  spec.access.remote_shell = raw.remote_shell;
  take_spawner(app, raw, &spec);
  spec.access.start_timeout = parse_duration("--start-timeout", raw.start_timeout);
  spec.environment.exports = parse_exports(raw.exports);
  spec.environment.clean_environment = raw.clean_environment;
  spec.programs.push_back({std::move(program), absolute(raw.working_directory, current_directory)});
  spec.names_working_directory = !raw.working_directory.empty();
  if (!raw.master_port.empty())
    spec.environment.master_port = parse_number_in("--master-port", raw.master_port, 1, 65535);
  spec.environment.hold_port = !raw.no_hold_port;
  spec.environment.wire_mpi = wire_mpi_of(app, raw);
  spec.environment.mpi_first = raw.mpi;
  spec.output.label = !raw.no_label;
  spec.output.training_summary = !raw.no_training_summary;
  spec.output.timestamp = raw.timestamp;
  spec.output.output_directory = raw.output_directory;
  spec.output.forward_stdin = raw.forward_stdin;
  spec.output.pty = raw.pty;
  spec.ending.grace = parse_duration("--grace", raw.grace);
  spec.ending.lost_after = parse_duration("--lost-after", raw.lost_after);
  if (!raw.timeout.empty()) spec.ending.timeout = parse_duration("--timeout", raw.timeout);
  if (spec.ending.timeout && *spec.ending.timeout <= Duration::zero())
    throw Error(ErrorKind::kUsage, "--timeout " + printable(raw.timeout) + " leaves no time to run",
                "leave it out where the job may run as long as it takes");
  if (raw.format != "text" && raw.format != "json") {
    throw Error(ErrorKind::kUsage, "--format '" + printable(raw.format) + "' is not understood",
                "expected text or json");
  }
  if (app.count("--format") > 0 && app.count("--dry-run") == 0 && !raw.is_check) {
    throw Error(ErrorKind::kUsage, "--format is of the plan, which nothing prints here",
                "add --dry-run, or leave --format out");
  }
  spec.report.format = raw.format == "json" ? PlanFormat::kJson : PlanFormat::kText;
  spec.report.verbose = raw.verbose;
  spec.output.summary_file = raw.summary_file;
  check_dry_run(app, raw, &spec);
  take_pictures(app, raw, &spec);
  return spec;
}

// A dry run waits no longer than kProbeTimeout for a driver, unless the user sets the knob.
Duration inventory_timeout(DryRun dry_run, const Environment& environment) {
  constexpr const char* kKnob = "HVRUN_INVENTORY_TIMEOUT";
  const Duration time = bounded_seconds(KnobReader(launcher_knobs(), environment).seconds(kKnob));
  const bool is_told = environment.get_filled(kKnob).has_value();
  return dry_run == DryRun::kNo || is_told ? time : std::min(time, kProbeTimeout);
}

void check_limits(const RawOptions& raw, const JobSpec& spec, bool is_check) {
  if (spec.ending.lost_after < std::chrono::duration<double>(kLeastLostAfterSeconds)) {
    throw Error(
        ErrorKind::kUsage,
        "--lost-after " + raw.lost_after + " is too short to tell a busy host from a lost one",
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

// hvrun check: --dry-run of no program.
void make_check(const CLI::App& app, const SplitWords& split, RawOptions* raw) {
  if (!split.program.empty())
    throw Error(ErrorKind::kUsage,
                "'hvrun check' takes no program, and '" + printable(split.program[0]) + "' is one",
                "hvrun --dry-run, with the program and the same options; to run a program called "
                "check: hvrun -- check");
  if (app.count("--dry-run") > 0)
    throw Error(ErrorKind::kUsage, "'hvrun check' is a dry run by itself",
                "leave --dry-run out, or name a program: hvrun --dry-run PROGRAM");
  raw->is_check = true;
}

// Values that a site has set once; options overwrite them.
RawOptions defaults_from(const Environment& environment) {
  const KnobReader knobs(launcher_knobs(), environment);
  knobs.check_all();
  RawOptions raw;
  raw.remote_shell = knobs.text("HVRUN_RSH");
  raw.start_timeout = knobs.value("HVRUN_START_TIMEOUT").text;
  raw.grace = knobs.value("HVRUN_GRACE").text;
  raw.lost_after = knobs.value("HVRUN_LOST_AFTER").text;
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
  std::vector<std::string> more = cut_at_colon(&split);
  parse_options(app, split.options, "'hvrun --help' lists the options");
  if (raw.help) return PrintCommand{is_check ? check_help_text(app) : help_text(app)};
  if (raw.version) return PrintCommand{std::string("hvrun ") + HVRUN_VERSION_TEXT + "\n"};
  if (raw.check_build) return CheckBuildCommand{};
  if (is_check) make_check(app, split, &raw);
  JobSpec spec = to_spec(app, raw, std::move(split.program), current_directory);
  if (is_check) spec.report.dry_run = DryRun::kHosts;
  check_limits(raw, spec, is_check);
  spec.access.inventory_timeout = inventory_timeout(spec.report.dry_run, environment);
  add_programs(&spec, parse_more_programs(std::move(more), spec.programs[0].working_directory,
                                          current_directory));
  HorovodSettings horovod = horovod_options.settings();
  Exports exports = horovod.variables;
  exports.add_all(spec.environment.exports);  // -x beats them
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
