// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/script_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "launcher/cli/horovod_options.h"
#include "launcher/cli/option_groups.h"
#include "launcher/cli/option_parsing.h"
#include "launcher/cli/option_values.h"
#include "launcher/commands/commands.h"
#include "launcher/facts/wrapper.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/plan/nested_launcher.h"
#include "launcher/script/directive.h"
#include "launcher/script/job_script.h"
#include "launcher/script/job_time.h"
#include "launcher/script/script_plan.h"
#include "launcher/script/site_catalogue.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {
namespace {

using Words = std::vector<std::string>;

static_assert(kMostRanksOfScript == kMostRanks);

constexpr const char* kDefaultSite = "generic-slurm";
constexpr const char* kHelp = "'hvrun script --help' lists the options";
constexpr int kMostRequeues = 10000;
constexpr int kDefaultRequeues = 10;

// Values as typed, by the groups of the options.
struct RawLayout {
  std::string np, nodes, ranks_per_node, gpus_per_rank, cores_per_rank;
};
struct RawSite {
  std::string site, partition, account, qos;
  std::vector<std::string> modules, options;
};
struct RawJob {
  std::string time, signal, requeue, job_name, output;
};
struct RawScriptOptions {
  RawLayout layout;
  RawSite where;
  RawJob job;
  std::string file, shown_site;
  bool force = false, list_sites = false, help = false;
};

void add_layout_options(CLI::App& app, RawLayout& raw) {
  const char* group = "Ranks and nodes";
  app.add_option("-n,--np,--num-proc", raw.np,
                 "number of ranks; also -np N (default: as many as the nodes hold)")
      ->group(group)
      ->type_name("N");
  app.add_option("--nodes", raw.nodes, "number of nodes (default: the fewest that hold the ranks)")
      ->group(group)
      ->type_name("N");
  app.add_option("--ranks-per-node", raw.ranks_per_node,
                 "ranks on each node (default: one per GPU, or per core)")
      ->group(group)
      ->type_name("N");
  app.add_option("--gpus-per-rank", raw.gpus_per_rank,
                 "GPUs of each rank (default: 1 where nodes have any)")
      ->group(group)
      ->type_name("N");
  app.add_option("--cores-per-rank", raw.cores_per_rank,
                 "cores of each rank (default: its part of the node's)")
      ->group(group)
      ->type_name("N");
}

void add_site_options(CLI::App& app, RawSite& raw) {
  const char* group = "Where";
  app.add_option("--site", raw.site, "site by its name or file (default: generic-slurm)")
      ->group(group)
      ->type_name("NAME|FILE");
  app.add_option("--partition", raw.partition, "kind of node (default: the site's first)")
      ->group(group)
      ->type_name("NAME");
  app.add_option("--account", raw.account, "account that pays")->group(group)->type_name("NAME");
  app.add_option("--qos", raw.qos, "quality of service (default: the partition's first)")
      ->group(group)
      ->type_name("NAME");
  app.add_option("--module", raw.modules, "environment module to load; repeatable")
      ->group(group)
      ->type_name("NAME")
      ->expected(1)
      ->take_all();
  app.add_option("--option", raw.options, "directive as it is: --option=--mem=100G; repeatable")
      ->group(group)
      ->type_name("TEXT")
      ->expected(1)
      ->take_all();
}

void add_job_options(CLI::App& app, RawJob& raw) {
  const char* group = "The job";
  app.add_option("--time", raw.time, "time limit: 2h, 90m, 1d12h or HH:MM:SS")
      ->group(group)
      ->type_name("TIME");
  app.add_option("--signal", raw.signal,
                 "the ranks get USR1 or USR2 so many seconds before the time limit")
      ->group(group)
      ->type_name("USR1@SECONDS");
  app.add_option("--requeue", raw.requeue,
                 "the job comes back at the time limit, up to N times (default: " +
                     std::to_string(kDefaultRequeues) + ")")
      ->group(group)
      ->type_name("=N")
      ->expected(0, 1);
  app.add_option("--job-name", raw.job_name, "name of the job (default: the program's)")
      ->group(group)
      ->type_name("NAME");
  app.add_option("--output", raw.output, "file for the job's output (default: the scheduler's)")
      ->group(group)
      ->type_name("FILE");
}

void add_output_options(CLI::App& app, RawScriptOptions& raw) {
  const char* group = "The script";
  app.add_option("-o,--script-file", raw.file, "write it there (default: standard output)")
      ->group(group)
      ->type_name("FILE");
  app.add_flag("--force", raw.force, "over a file that is there already")->group(group);
  app.add_flag("--list-sites", raw.list_sites, "print the sites that --site knows")->group(group);
  app.add_option("--show-site", raw.shown_site, "print a site's file, to copy and adapt")
      ->group(group)
      ->type_name("NAME|FILE");
  app.add_flag("-h,--help", raw.help, "print this help")->group(group);
}

// raw must outlive the app's parsing.
void add_script_options(CLI::App& app, RawScriptOptions& raw) {
  app.set_help_flag();  // removes CLI11's; --help is added below
  add_layout_options(app, raw.layout);
  add_site_options(app, raw.where);
  add_job_options(app, raw.job);
  add_output_options(app, raw);
}

std::string script_help(const CLI::App& app) {
  const auto formatter = std::dynamic_pointer_cast<CLI::Formatter>(app.get_formatter());
  std::string groups = formatter->make_groups(&app, CLI::AppFormatMode::Normal);
  for (std::size_t at; (at = groups.find("\n\n\n")) != std::string::npos;) groups.erase(at, 1);
  const std::string apart = "--requeue =N", joined = "--requeue=N ";
  if (const std::size_t at = groups.find(apart); at != std::string::npos)
    groups.replace(at, apart.size(), joined);
  return "hvrun script: write the job script of a batch scheduler (Slurm, PBS, LSF)\n\n"
         "Usage: hvrun script [options] [options of hvrun] [--] program [arguments]\n"
         "       hvrun script --list-sites\n"
         "       hvrun script --show-site NAME\n" +
         groups +
         "\nEvery other option is one of hvrun's, and stands in the script before the program: "
         "-x,\n"
         "--map-by, --verbose, ... ('hvrun --help').\n"
         "\nExamples:\n"
         "  hvrun script -np 32 --site jean-zay --time 2h -- ./train --epochs 90\n"
         "  hvrun script --nodes 3 --ranks-per-node 4 --gpus-per-rank 1 -o job.slurm ./train\n"
         "  hvrun script -np 8 --time 20h --signal USR1@300 --requeue -- ./train\n"
         "\nMore: man hvrun, man hvrun-site\n";
}

std::vector<OptionShape> shapes_of_hvrun() {
  CLI::App app;
  RawOptions raw;
  HorovodOptions horovod;
  add_options(app, raw);
  horovod.add_to(app);
  return shapes_of(app);
}

SplitWords split_words(const Words& words, const std::vector<OptionShape>& own) {
  std::vector<OptionShape> shapes = own;  // first, so that a common name is the script's
  for (OptionShape& shape : shapes_of_hvrun()) shapes.push_back(std::move(shape));
  try {
    return split_at_program(words, shapes);
  } catch (const Error& error) {
    throw Error(ErrorKind::kUsage, error.what(),
                error.hint() + "; those of the job script: 'hvrun script --help'");
  }
}

struct SharedWords {
  Words own;     // of hvrun script
  Words passed;  // of hvrun
  Words passed_without_output_directory;
};

// Splits the options before the program. "--np=4" belongs to --np, "-n4" to -n.
SharedWords share_out(const SplitWords& split, const std::vector<OptionShape>& own) {
  SharedWords shared;
  for (std::size_t i = 0; i < split.begins.size(); ++i) {
    const std::size_t begin = split.begins[i];
    const std::size_t end =
        i + 1 < split.begins.size() ? split.begins[i + 1] : split.options.size();
    const std::string& word = split.options[begin];
    const bool is_long = word.rfind("--", 0) == 0;
    const std::string name = is_long ? word.substr(0, word.find('=')) : word.substr(0, 2);
    const bool is_own = std::any_of(own.begin(), own.end(), [&](const OptionShape& shape) {
      return std::find(shape.names.begin(), shape.names.end(), name) != shape.names.end();
    });
    const auto add_to = [&](Words& words) {
      for (std::size_t at = begin; at < end; ++at) words.push_back(split.options[at]);
    };
    add_to(is_own ? shared.own : shared.passed);
    if (!is_own && name != "--output-dir" && name != "--output-filename")
      add_to(shared.passed_without_output_directory);
  }
  return shared;
}

std::optional<int> number_of(const std::string& option, const std::string& text, int lowest,
                             int highest) {
  if (text.empty()) return std::nullopt;
  return parse_number_in(option, text, lowest, highest);
}

void check_word(const std::string& option, const std::string& text) {
  if (!text.empty() && !is_directive_word(text))
    throw Error(ErrorKind::kUsage,
                option + " '" + printable(text) + "' cannot stand in a directive",
                std::string("expected ") + kDirectiveWordForm);
}

// Values are quoted for the shell, but text after a newline could become a directive.
void check_line(const std::string& option, const std::string& text, bool is_allowed,
                const char* form) {
  if (!is_allowed)
    throw Error(ErrorKind::kUsage, option + " '" + printable(text) + "' is not understood",
                std::string("expected ") + form);
}

int requeues_of(const std::string& text) {
  if (text.empty()) return kDefaultRequeues;
  return parse_number_in("--requeue", text, 1, kMostRequeues);
}

void take_layout(const RawLayout& raw, JobRequest* request) {
  request->ranks = number_of("-np", raw.np, 1, kMostRanks);
  request->nodes = number_of("--nodes", raw.nodes, 1, kMostNodes);
  request->ranks_per_node = number_of("--ranks-per-node", raw.ranks_per_node, 1, kMostCoresPerNode);
  request->gpus_per_rank = number_of("--gpus-per-rank", raw.gpus_per_rank, 0, 1024);
  request->cores_per_rank = number_of("--cores-per-rank", raw.cores_per_rank, 1, kMostCoresPerNode);
}

void take_site(const RawSite& raw, JobRequest* request) {
  check_word("--partition", raw.partition);
  check_word("--account", raw.account);
  check_word("--qos", raw.qos);
  for (const std::string& each : raw.modules)
    check_line("--module", each, is_one_line(each), "the name of a module");
  for (const std::string& each : raw.options)
    check_line("--option", each, is_directive_line(each), kDirectiveLineForm);
  request->partition = raw.partition;
  request->account = raw.account;
  request->qos = raw.qos;
  request->modules = raw.modules;
  request->options = raw.options;
}

void take_job(const CLI::App& app, const RawJob& raw, JobRequest* request) {
  check_word("--job-name", raw.job_name);
  check_word("--output", raw.output);
  request->job_name = raw.job_name;
  request->output = raw.output;
  if (!raw.time.empty())
    request->time = need(parse_job_time(raw.time), "--time", raw.time, kJobTimeForm);
  if (!raw.signal.empty())
    request->signal = need(parse_early_signal(raw.signal), "--signal", raw.signal,
                           "USR1@120 or USR2@5m: hvrun hands these two to the ranks");
  if (request->signal && request->signal->before.count() > kMostSignalSeconds)
    throw Error(ErrorKind::kUsage,
                "--signal '" + printable(raw.signal) + "' comes earlier than a scheduler takes it",
                "at most " + std::to_string(kMostSignalSeconds) + " seconds before the time limit");
  if (app.count("--requeue") > 0) request->requeues = requeues_of(raw.requeue);
}

// hvrun in the script must understand its words. Throws Error(kUsage).
JobSpec check_hvrun_words(const Words& words, const Environment& environment,
                          const std::function<std::string()>& current_directory) {
  const CommandLine command = parse_command_line(words, environment, current_directory);
  if (const auto* launch = std::get_if<LaunchCommand>(&command)) return launch->spec;
  throw Error(ErrorKind::kUsage, "--version and --help start no program",
              "leave them out: they would stand in the job script");
}

// Every word that becomes part of the script stays on its line.
void check_words_of_line(const Words& words) {
  for (const std::string& word : words) {
    if (word.find_first_of("\r\n") != std::string::npos || word.find('\0') != std::string::npos)
      throw Error(ErrorKind::kUsage, "'" + printable(word) + "' has a line break in it",
                  "words of the job script stand on one line; put the program's into a file");
  }
}

// An optional value follows '=' only; a separate word would be taken as the program.
void check_requeue(const SplitWords& split) {
  const bool is_bare = !split.is_set_off && !split.options.empty() &&
                       split.options.back() == "--requeue" && !split.program.empty();
  if (is_bare && parse_integer(split.program[0]))
    throw Error(ErrorKind::kUsage, "--requeue " + printable(split.program[0]) + " is two words",
                "--requeue=" + printable(split.program[0]));
}

// The scheduler chooses the nodes, and a job script does not run dry.
void check_for_job(const JobSpec& spec) {
  const bool has_hosts = !spec.hosts.hosts.empty() || !spec.hosts.hostfile.empty();
  if (has_hosts || spec.report.dry_run != DryRun::kNo)
    throw Error(ErrorKind::kUsage,
                std::string(has_hosts ? "-H and --hostfile name" : "--dry-run asks for") +
                    (has_hosts ? " hosts, and a job's nodes are the scheduler's choice"
                               : " a plan, and a job runs"),
                "leave it out");
}

// "hvrun script --nodes 2 --ranks-per-node 4 python3 train.py".
std::string suggest_script_command(const NestedLauncher& launcher, const Words& options,
                                   const JobRequest& request) {
  if (launcher.has_options_of_hvrun)
    return "leave out '" + launcher.name +
           "', and put its options, each once, behind 'hvrun script'";
  Words words{"hvrun", "script"};
  words.insert(words.end(), options.begin(), options.end());
  const bool are_per_node = launcher.are_ranks_per_host && request.nodes;
  if (!request.ranks && !request.ranks_per_node)
    words.insert(words.end(), {are_per_node ? "--ranks-per-node" : "-np",
                               launcher.ranks ? std::to_string(*launcher.ranks) : "N"});
  return format_command(words, launcher.program);
}

// Must run before check_hvrun_words, whose hint would name hvrun, not hvrun script. options: as
// typed.
void refuse_launcher_in_script(const Words& options, const SplitWords& split,
                               const SharedWords& shared, const JobRequest& request) {
  const Words& passed = shared.passed;
  if (std::find(passed.begin(), passed.end(), "--nested") != passed.end()) return;
  refuse_launcher(split.program, [&](const NestedLauncher& launcher) {
    return suggest_script_command(launcher, options, request);
  });
}

void check_program(const SplitWords& split) {
  if (split.program.empty())
    throw Error(ErrorKind::kUsage, "no program to run",
                "hvrun script [options] -- program [arguments]; 'hvrun script --help' explains");
  if (!split.is_set_off &&
      std::find(split.program.begin(), split.program.end(), ":") != split.program.end())
    throw Error(ErrorKind::kUsage, "a job script starts one program, and ':' begins another",
                "behind '--' a ':' is an argument");
}

void check_exclusive(const RawScriptOptions& raw, const SplitWords& split) {
  if (!raw.list_sites && raw.shown_site.empty()) return;
  if (split.begins.size() > 1 || !split.program.empty())
    throw Error(ErrorKind::kUsage,
                "--list-sites and --show-site print something else than a script",
                "hvrun script --show-site NAME, and nothing else");
}

// torchrun and its like start the processes of a node themselves.
void refuse_launchers_that_share_a_node(const JobRequest& request, const ScriptPlan& plan) {
  const auto launcher = find_nested_launcher(request.program);
  if (!launcher || plan.nodes == 0 || plan.ranks_per_node < 2) return;
  throw Error(ErrorKind::kUsage,
              "'" + printable(launcher->name) + "' starts the processes of a node itself, and " +
                  std::to_string(plan.ranks_per_node) + " ranks of each node would run it",
              "--ranks-per-node 1; or leave out " + launcher->name +
                  ", so that hvrun starts the processes itself; --nested starts it all the same");
}

std::string text_of_site(const std::string& name, const Environment& environment) {
  const SiteFile file = find_site(name, environment);
  (void)parse_site(file.text, file.source);  // reports an invalid file instead of showing it
  return file.text;
}

Site read_site(const ScriptCommand& command, const Environment& environment) {
  const SiteFile file = find_site(command.site, environment);
  return parse_site(file.text, file.source);
}

// What `hvrun script` prints or writes into command.file. Reads the site's file; warns of GPUs that
// no rank would use.
std::string text_of_script(const ScriptCommand& command, const Environment& environment,
                           const std::function<std::string()>& current_directory) {
  if (command.lists_sites) return list_of_sites(environment);
  if (command.shows_site) return text_of_site(command.site, environment);
  const Site site = read_site(command, environment);
  const ScriptPlan plan = plan_script(command.request, site);
  check_hvrun_words(hvrun_words(command.request, plan, scheduler_part(command.request, site, plan)),
                    environment, current_directory);
  if (!command.allows_nested) refuse_launchers_that_share_a_node(command.request, plan);
  if (const std::string note = spare_gpus_note(plan); !note.empty()) print_warnings({note});
  return job_script(command.request, site, plan);
}

// What the program runs: "train.py" of "numactl -l python train.py" and of "bash train.sh".
std::string main_file_of(const Words& program) {
  wire::Program inner{program, "/", {}};
  while (const auto wrapped = wrapped_program(inner)) inner = *wrapped;
  const Words& words = inner.argv;
  const std::string name = base_name(words[0]);
  if (name == "bash" || name == "sh")
    return words.size() > 1 && words[1][0] != '-' ? words[1] : words[0];
  if (!is_python_name(name)) return words[0];
  const PythonTarget target = python_target(words);
  if (!target.script.empty()) return target.script;
  return target.module.empty() ? words[0] : target.module;
}

// Throws Error(kUsage) where the file exists and must not be overwritten.
void save_script(const ScriptCommand& command, const std::string& text) {
  const auto fail = [&](int error, const std::string& hint) {
    throw Error(ErrorKind::kUsage,
                "write the job script " + printable(command.file) + ": " + errno_text(error), hint);
  };
  const int mode = command.may_overwrite ? O_TRUNC : O_EXCL;
  const UniqueFd fd(
      ::open(command.file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | mode, 0777));  // less the umask
  if (!fd && errno == EEXIST) fail(errno, "--force overwrites it");
  if (!fd) fail(errno, "name a file that you may write, with -o");
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = ::write(fd.get(), text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) fail(errno, "free some space, or write it elsewhere");
    done += static_cast<std::size_t>(wrote);
  }
}

// The command that submits the file: "sbatch job.slurm".
std::string how_to_submit(const ScriptCommand& command, const Environment& environment) {
  const std::string file = shell_quote(command.file);
  switch (read_site(command, environment).scheduler) {
    case BatchScheduler::kPbs:
      return "qsub " + file;
    case BatchScheduler::kLsf:
      return "bsub < " + file;
    case BatchScheduler::kSlurm:
      break;
  }
  return "sbatch " + file;
}

}  // namespace

std::variant<ScriptCommand, PrintCommand> parse_script_command(
    const Words& words, const Environment& environment,
    const std::function<std::string()>& current_directory) {
  CLI::App app;
  RawScriptOptions raw;
  add_script_options(app, raw);
  const std::vector<OptionShape> own = shapes_of(app);
  const SplitWords split = split_words(words, own);
  const SharedWords shared = share_out(split, own);
  parse_options(app, shared.own, kHelp);
  if (raw.help) return PrintCommand{script_help(app)};
  refuse_empty_values(app);
  check_exclusive(raw, split);
  ScriptCommand command;
  command.lists_sites = raw.list_sites;
  command.shows_site = !raw.shown_site.empty();
  const std::string site = raw.where.site.empty() ? kDefaultSite : raw.where.site;
  command.site = command.shows_site ? raw.shown_site : site;
  if (command.lists_sites || command.shows_site) return command;
  check_requeue(split);
  check_program(split);
  take_layout(raw.layout, &command.request);
  take_site(raw.where, &command.request);
  take_job(app, raw.job, &command.request);
  refuse_launcher_in_script(typed_options(words, split), split, shared, command.request);
  command.request.hvrun.typed = shared.passed;
  command.request.program = split.program;
  command.request.hvrun.main_file = main_file_of(split.program);
  command.file = raw.file;
  command.may_overwrite = raw.force;
  Words passed = shared.passed;
  passed.emplace_back("--");
  passed.insert(passed.end(), split.program.begin(), split.program.end());
  check_words_of_line(passed);
  const JobSpec spec = check_hvrun_words(passed, environment, current_directory);
  check_for_job(spec);
  command.allows_nested = spec.allows_nested;
  if (command.request.requeues && !spec.output.output_directory.empty()) {
    command.request.hvrun.typed = shared.passed_without_output_directory;
    command.request.hvrun.output_directory = spec.output.output_directory;
  }
  if (spec.ranks)
    throw Error(ErrorKind::kUsage, "-np stands together with other letters", "-np N apart");
  return command;
}

int run_script(const Words& words, const Environment& environment) {
  const std::function<std::string()> directory = [&environment] {
    return current_directory(environment);
  };
  const auto parsed = parse_script_command(words, environment, directory);
  // Also a list of the site files that others have put there.
  if (const auto* text = std::get_if<PrintCommand>(&parsed)) return print_report(text->text);
  const auto& command = std::get<ScriptCommand>(parsed);
  const std::string text = text_of_script(command, environment, directory);
  if (command.file.empty()) return print_text(text);
  save_script(command, text);
  print_message(command.file + " is written; submit it by: " + how_to_submit(command, environment));
  return 0;
}

}  // namespace hv::launcher
