// SPDX-License-Identifier: Apache-2.0
#include "launcher/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "hvrun_version.h"
#include "launcher/cli/knobs.h"
#include "launcher/cli/more_programs.h"
#include "launcher/cli/option_values.h"
#include "launcher/cli/program_search.h"
#include "launcher/plan/launch_plan.h"
#include "src/base/check.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// Option values as typed, before they are checked and become a JobSpec.
struct RawOptions {
  HostWishes hosts;
  std::string np, map_by = "slot", rank_by, npernode, gpus_per_rank, bind_to, gpu_bind = "all";
  std::string ssh_port, dry_run, format = "text", working_directory;
  std::string start_timeout, grace, lost_after, timeout, master_port;
  std::string ssh_user, ssh_identity_file, remote_shell, output_directory, summary_file;
  std::vector<std::string> exports;
  bool oversubscribe = false, nic_bind = false, report_bindings = false;
  bool ssh_accept_new = false, clean_environment = false, no_hold_port = false, no_label = false,
       timestamp = false;
  bool forward_stdin = false, pty = false, verbose = false, help = false, version = false;
};

// The knob's value is what holds where the option is not given.
std::string with_default(const std::string& text, std::string_view knob) {
  const std::vector<Knob>& table = launcher_knobs();
  const auto found = std::find_if(table.begin(), table.end(),
                                  [knob](const Knob& each) { return each.name == knob; });
  HV_CHECK(found != table.end(), "a knob of that name");
  return text + " (default: " + found->default_text + ")";
}

void add_host_options(CLI::App& app, RawOptions& raw) {
  const char* group = "Ranks and hosts";
  app.add_option("-n,--np,--num-proc", raw.np,
                 "number of ranks; also -np N (default: one per slot)")
      ->group(group)
      ->type_name("N");
  app.add_option("-H,--hosts", raw.hosts.hosts, "hosts and slots: a:2,n[01-16]:4; or a hostfile")
      ->group(group)
      ->type_name("LIST");
  app.add_option("--hostfile", raw.hosts.hostfile, "file with a line per host: name slots=N")
      ->group(group)
      ->type_name("FILE");
  app.add_option("--hostfile-format", raw.hosts.hostfile_format,
                 "allow only lines as of openmpi, mpich, pbs, lsf, sge or slurm (default: any)")
      ->group(group)
      ->type_name("WORD");
  app.add_option("--include", raw.hosts.include,
                 "only these of the hosts, and of their slots: a:0,2@b")
      ->group(group)
      ->type_name("LIST");
  app.add_option("--exclude", raw.hosts.exclude, "all but these")->group(group)->type_name("LIST");
}

void add_mapping_options(CLI::App& app, RawOptions& raw) {
  const char* group = "Placement";
  app.add_option("--map-by", raw.map_by, "slot, node, gpu, numa or ppr:N:node (default: slot)")
      ->group(group)
      ->type_name("RULE");
  app.add_option("--rank-by", raw.rank_by, "number ranks by slot or node (default: as mapped)")
      ->group(group)
      ->type_name("RULE");
  app.add_option("--npernode", raw.npernode, "so many ranks on each host: ppr:N:node")
      ->group(group)
      ->type_name("N");
  app.add_option("--gpus-per-rank", raw.gpus_per_rank, "GPUs of each rank (default: 1)")
      ->group(group)
      ->type_name("N");
  app.add_option("--rankfile", raw.hosts.rankfile,
                 "file with a line per rank: rank 0=node1 slot=0-3")
      ->group(group)
      ->type_name("FILE");
  app.add_flag("--oversubscribe", raw.oversubscribe, "more ranks than slots may share a host")
      ->group(group);
}

void add_binding_options(CLI::App& app, RawOptions& raw) {
  const char* group = "Binding";
  app.add_option("--bind-to", raw.bind_to,
                 "cores of a rank: none, core, numa or gpu (default: near its GPU, else a share)")
      ->group(group)
      ->type_name("WHAT");
  app.add_option("--gpu-bind", raw.gpu_bind,
                 "a rank sees all of the job's GPUs, or its own: visible")
      ->group(group)
      ->type_name("all|visible");
  app.add_flag("--nic-bind", raw.nic_bind, "NCCL and UCX use the RDMA adapters near a rank's GPU")
      ->group(group);
  app.add_flag("--report-bindings", raw.report_bindings, "say which cores and GPUs each rank has")
      ->group(group);
}

void add_ssh_options(CLI::App& app, RawOptions& raw) {
  const char* group = "Reaching hosts";
  app.add_option("-p,--ssh-port", raw.ssh_port, "port of the hosts' sshd")
      ->group(group)
      ->type_name("PORT");
  app.add_option("-i,--ssh-identity-file", raw.ssh_identity_file, "private key to log in with")
      ->group(group)
      ->type_name("FILE");
  app.add_option("-l,--ssh-user", raw.ssh_user, "user to log in as")
      ->group(group)
      ->type_name("USER");
  app.add_flag("--ssh-accept-new", raw.ssh_accept_new,
               "accept and remember keys of hosts never seen before")
      ->group(group);
  app.add_option("--rsh", raw.remote_shell,
                 "reach hosts by 'CMD host command' instead, such as 'ssh -J gate'")
      ->group(group)
      ->type_name("CMD");
  app.add_option("--start-timeout", raw.start_timeout,
                 with_default("seconds a host has to answer", "HVRUN_START_TIMEOUT"))
      ->group(group)
      ->type_name("SECONDS");
}

void add_environment_options(CLI::App& app, RawOptions& raw) {
  const char* group = "What ranks are born with";
  app.add_option("-x", raw.exports,
                 "variable for the ranks: NAME, NAME=VALUE or 'PREFIX_*'; repeatable")
      ->group(group)
      ->type_name("NAME[=VALUE]")
      ->expected(1)
      ->take_all();
  app.add_flag("--clean-env", raw.clean_environment,
               "ranks get the host's login variables and -x only")
      ->group(group);
  app.add_option("--wdir", raw.working_directory,
                 "working directory of the ranks (default: this one)")
      ->group(group)
      ->type_name("DIR");
  app.add_option("--master-port", raw.master_port, "MASTER_PORT (default: a free one)")
      ->group(group)
      ->type_name("PORT");
  app.add_flag("--no-hold-port", raw.no_hold_port,
               "do not reserve MASTER_PORT, for programs that bind it without SO_REUSEADDR")
      ->group(group);
}

void add_output_options(CLI::App& app, RawOptions& raw) {
  const char* group = "Output and input";
  app.add_flag("--no-label", raw.no_label, "no [rank] before each line")->group(group);
  app.add_flag("--timestamp", raw.timestamp, "time at the source before each line")->group(group);
  app.add_option("--output-dir", raw.output_directory, "also write DIR/rank.N/stdout and stderr")
      ->group(group)
      ->type_name("DIR");
  app.add_flag("--stdin", raw.forward_stdin, "hand standard input to rank 0 (else /dev/null)")
      ->group(group);
  app.add_flag("--pty", raw.pty, "each rank gets a terminal; both its streams arrive as stdout")
      ->group(group);
}

void add_ending_options(CLI::App& app, RawOptions& raw) {
  const char* group = "Ending";
  app.add_option("--grace", raw.grace,
                 with_default("seconds between SIGTERM and SIGKILL", "HVRUN_GRACE"))
      ->group(group)
      ->type_name("SECONDS");
  app.add_option(
         "--lost-after", raw.lost_after,
         with_default("seconds of silence after which a host counts as lost", "HVRUN_LOST_AFTER"))
      ->group(group)
      ->type_name("SECONDS");
  app.add_option("--timeout", raw.timeout, "seconds the job may run (default: no limit)")
      ->group(group)
      ->type_name("SECONDS");
}

void add_telling_options(CLI::App& app, RawOptions& raw) {
  const char* group = "Asking and telling";
  app.add_option("--dry-run", raw.dry_run, "print the plan, connect to nothing")
      ->group(group)
      ->type_name("=offline")
      ->expected(0, 1);
  app.add_option("--format", raw.format, "of the plan: text or json")
      ->group(group)
      ->type_name("text|json");
  app.add_flag("-v,--verbose", raw.verbose, "each phase with its time")->group(group);
  app.add_option("--summary", raw.summary_file, "write the end of the job as JSON")
      ->group(group)
      ->type_name("FILE");
  app.add_flag("--version", raw.version, "print hvrun's version")->group(group);
  app.add_flag("-h,--help", raw.help, "print this help")->group(group);
}

void add_options(CLI::App& app, RawOptions& raw) {
  app.set_help_flag();  // ours, so that the program's own --help is never taken
  add_host_options(app, raw);
  add_mapping_options(app, raw);
  add_binding_options(app, raw);
  add_ssh_options(app, raw);
  add_environment_options(app, raw);
  add_output_options(app, raw);
  add_ending_options(app, raw);
  add_telling_options(app, raw);
}

std::vector<OptionShape> shapes_of(CLI::App& app) {
  std::vector<OptionShape> shapes;
  for (const CLI::Option* option : app.get_options()) {
    OptionShape shape;
    for (const std::string& name : option->get_snames()) shape.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) shape.names.push_back("--" + name);
    shape.takes_value = option->get_items_expected_min() > 0;
    shapes.push_back(shape);
  }
  return shapes;
}

std::string help_text(const CLI::App& app) {
  const auto formatter = std::dynamic_pointer_cast<CLI::Formatter>(app.get_formatter());
  std::string groups = formatter->make_groups(&app, CLI::AppFormatMode::Normal);
  for (std::size_t at; (at = groups.find("\n\n\n")) != std::string::npos;) groups.erase(at, 1);
  // A value that only '=' introduces, which the formatter does not know of; the column stays.
  const std::string apart = "--dry-run =offline", joined = "--dry-run=offline ";
  if (const std::size_t at = groups.find(apart); at != std::string::npos)
    groups.replace(at, apart.size(), joined);
  return "hvrun: start one process per GPU on one or many hosts, and end them all together\n\n"
         "Usage: hvrun [options] [--] program [arguments]\n"
         "       hvrun [options] -np N program : -np M program ...\n"
         "       hvrun env                    every knob, its value and where that came from\n"
         "       hvrun env --algorithms       which algorithm carries out which collective\n" +
         groups +
         "\nExamples:\n"
         "  hvrun -np 4 ./train                     four ranks on this machine\n"
         "  hvrun -np 4 -H node1:2,node2:2 ./train  two hosts, over SSH\n"
         "  hvrun --hostfile hosts ./train          one rank per slot of the file's hosts\n"
         "  hvrun --dry-run=offline -np 4 -H node1:2,node2:2 ./train\n"
         "\nMore: man hvrun, man hvrun-env\n";
}

// What is wrong with an option that takes one value and has several.
std::optional<std::string> repeated_option(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 1 && option->count() > 1)
      return option->get_name(false, true) + " is given " + std::to_string(option->count()) +
             " times";
  }
  return std::nullopt;
}

void check_dry_run(const CLI::App& app, const RawOptions& raw, JobSpec* spec) {
  if (app.count("--dry-run") == 0) return;
  if (raw.dry_run != "offline") {
    throw Error(ErrorKind::kUsage,
                raw.dry_run.empty() ? "--dry-run that asks the hosts is not there yet"
                                    : "--dry-run=" + printable(raw.dry_run) + " is not understood",
                "use --dry-run=offline, which prints the plan without connecting");
  }
  spec->dry_run_offline = true;
}

// -H "$HOSTS" with HOSTS unset is a mistake, not this machine.
void refuse_empty_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_min() == 0) continue;
    for (const std::string& value : option->results()) {
      if (!value.empty()) continue;
      throw Error(ErrorKind::kUsage, option->get_name(false, true) + " has an empty value",
                  "give it one, or leave the option out; is a shell variable unset?");
    }
  }
}

void take_mapping(const CLI::App& app, const RawOptions& raw, JobSpec* spec) {
  spec->map_by =
      need(parse_map_by(raw.map_by), "--map-by", raw.map_by, "slot, node, gpu, numa or ppr:N:node");
  if (!raw.npernode.empty()) {
    if (app.count("--map-by") > 0)
      throw Error(ErrorKind::kUsage, "both --map-by and --npernode place ranks",
                  "give one of them; --npernode N is --map-by ppr:N:node");
    spec->map_by = {MapBy::kPerNode,
                    parse_number_in("--npernode", raw.npernode, 1, kMostSlotsPerHost)};
  }
  if (!raw.hosts.rankfile.empty() &&
      (app.count("--map-by") + app.count("--rank-by") + app.count("--npernode") > 0))
    throw Error(ErrorKind::kUsage,
                "--rankfile says where every rank is, and so does another option",
                "leave out --map-by, --rank-by and --npernode, or the rankfile");
  if (!raw.rank_by.empty())
    spec->rank_by = need(parse_rank_by(raw.rank_by), "--rank-by", raw.rank_by, "slot or node");
  if (!raw.gpus_per_rank.empty())
    spec->gpus_per_rank = parse_number_in("--gpus-per-rank", raw.gpus_per_rank, 1, 1024);
  spec->oversubscribe = raw.oversubscribe;
  if (!raw.bind_to.empty())
    spec->bind_to =
        need(parse_bind_to(raw.bind_to), "--bind-to", raw.bind_to, "none, core, numa or gpu");
  if (raw.gpu_bind != "all" && raw.gpu_bind != "visible")
    need(std::optional<bool>(), "--gpu-bind", raw.gpu_bind, "all or visible");
  // A local rank's number says which one is its own only where each has one.
  const bool is_default = app.count("--gpu-bind") == 0;
  spec->sees_only_its_gpus = raw.gpu_bind == "visible" || (is_default && spec->gpus_per_rank > 1);
  spec->nic_bind = raw.nic_bind;
  spec->report_bindings = raw.report_bindings;
}

JobSpec to_spec(const CLI::App& app, const RawOptions& raw, std::vector<std::string> program,
                const std::function<std::string()>& current_directory) {
  refuse_empty_values(app);
  JobSpec spec;
  if (!raw.np.empty()) spec.ranks = parse_number_in("-np", raw.np, 1, kMostRanks);
  spec.hosts = raw.hosts;
  take_mapping(app, raw, &spec);
  if (!raw.ssh_port.empty())
    spec.ssh_port =
        static_cast<std::uint16_t>(parse_number_in("--ssh-port", raw.ssh_port, 1, 65535));
  spec.ssh_user = raw.ssh_user;
  spec.ssh_identity_file = raw.ssh_identity_file;
  spec.ssh_accept_new = raw.ssh_accept_new;
  spec.remote_shell = raw.remote_shell;
  spec.start_timeout = parse_duration("--start-timeout", raw.start_timeout);
  spec.exports = raw.exports;
  spec.clean_environment = raw.clean_environment;
  spec.programs.push_back({std::move(program), absolute(raw.working_directory, current_directory)});
  if (!raw.master_port.empty())
    spec.master_port = parse_number_in("--master-port", raw.master_port, 1, 65535);
  spec.hold_port = !raw.no_hold_port;
  spec.label = !raw.no_label;
  spec.timestamp = raw.timestamp;
  spec.output_directory = raw.output_directory;
  spec.forward_stdin = raw.forward_stdin;
  spec.pty = raw.pty;
  spec.grace = parse_duration("--grace", raw.grace);
  spec.lost_after = parse_duration("--lost-after", raw.lost_after);
  if (!raw.timeout.empty()) spec.timeout = parse_duration("--timeout", raw.timeout);
  if (raw.format != "text" && raw.format != "json") {
    throw Error(ErrorKind::kUsage, "--format '" + printable(raw.format) + "' is not understood",
                "expected text or json");
  }
  if (app.count("--format") > 0 && app.count("--dry-run") == 0) {
    throw Error(ErrorKind::kUsage, "--format is of the plan, which nothing prints here",
                "add --dry-run=offline, or leave --format out");
  }
  spec.format = raw.format == "json" ? PlanFormat::kJson : PlanFormat::kText;
  spec.verbose = raw.verbose;
  spec.summary_file = raw.summary_file;
  check_dry_run(app, raw, &spec);
  return spec;
}

void check_limits(const RawOptions& raw, const JobSpec& spec) {
  if (spec.lost_after < std::chrono::duration<double>(kLeastLostAfterSeconds)) {
    throw Error(
        ErrorKind::kUsage,
        "--lost-after " + raw.lost_after + " is too short to tell a busy host from a lost one",
        "at least 0.5 s");
  }
  if (spec.programs[0].argv.empty()) {
    throw Error(ErrorKind::kUsage, "no program to run",
                "hvrun [options] program [arguments]; 'hvrun --help' explains");
  }
  if (spec.summary_file == "-") {
    throw Error(ErrorKind::kUsage,
                "--summary - would write to standard output, which is the ranks'",
                "name a file, or ./- for one of that name");
  }
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

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& words,
                               const Environment& environment,
                               const std::function<std::string()>& current_directory) {
  if (!words.empty() && words[0] == "env") {
    if (words.size() == 1) return EnvCommand{};
    if (words.size() == 2 && words[1] == "--algorithms") return EnvCommand{true};
    throw Error(ErrorKind::kUsage, "'hvrun env' takes no arguments but --algorithms",
                "to run the program env: hvrun -- env " + words[1]);
  }
  CLI::App app;
  RawOptions raw = defaults_from(environment);
  add_options(app, raw);
  SplitWords split = split_at_program(words, shapes_of(app));
  std::vector<std::string> more = cut_at_colon(&split);
  try {
    app.parse(std::vector<std::string>(split.options.rbegin(), split.options.rend()));
  } catch (const CLI::ArgumentMismatch& error) {
    throw Error(ErrorKind::kUsage, repeated_option(app).value_or(error.what()),
                "'hvrun --help' lists the options");
  } catch (const CLI::Error& error) {
    throw Error(ErrorKind::kUsage, error.what(), "'hvrun --help' lists the options");
  }
  if (raw.help) return PrintCommand{help_text(app)};
  if (raw.version) return PrintCommand{std::string("hvrun ") + HVRUN_VERSION_TEXT + "\n"};
  JobSpec spec = to_spec(app, raw, std::move(split.program), current_directory);
  check_limits(raw, spec);
  add_programs(&spec, parse_more_programs(std::move(more), spec.programs[0].working_directory,
                                          current_directory));
  return LaunchCommand{std::move(spec)};
}

}  // namespace hv::launcher
