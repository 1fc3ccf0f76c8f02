// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/nested_launcher.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "launcher/facts/wrapper.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

using Words = std::vector<std::string>;

constexpr int kMostShownBytes = 300;

// Lists are separated by commas; options stand without dashes, with '-' in place of '_'.
struct LauncherKind {
  const char* files;            // names of its executable
  const char* modules = "";     // for python -m
  const char* subcommand = "";  // the first argument that starts a job; empty: none is needed
  const char* without_subcommand = "";  // files and modules that need none
  const char* flags = "";               // options without a value
  const char* pairs = "";               // options with two values
  const char* ranks = "";               // options with the number of processes
  bool are_ranks_per_host = false;
  const char* join = "";          // options of one that is started on each host
  const char* join_options = "";  // the same, for messages
  bool starts_python = false;     // its program is a script of Python's, unless an option says not
  bool takes_options_of_hvrun = false;
};

constexpr LauncherKind kKinds[] = {
    {.files = "torchrun,torch-distributed-run",
     .modules = "torch.distributed.run,torch.distributed.launch",
     .flags = "standalone,m,module,no-python,run-path,virtual-local-rank,use-env,h,help",
     .ranks = "nproc-per-node",
     .are_ranks_per_host = true,
     .join = "nnodes,node-rank,rdzv-endpoint,rdzv-backend,master-addr",
     .join_options = "--nnodes and --rdzv-endpoint",
     .starts_python = true},
    {.files = "accelerate,accelerate-launch",
     .modules = "accelerate.commands.accelerate_cli,accelerate.commands.launch",
     .subcommand = "launch",
     .without_subcommand = "accelerate-launch,accelerate.commands.launch",
     .flags = "cpu,multi-gpu,tpu,ipex,use-xpu,use-mps-device,use-deepspeed,use-fsdp,same-network,"
              "use-parallelism-config,use-megatron-lm,m,module,no-python,debug,q,quiet,"
              "dynamo-use-fullgraph,dynamo-use-dynamic,dynamo-use-regional-compilation,"
              "enable-cpu-affinity,tpu-use-cluster,no-tpu-use-cluster,tpu-use-sudo,downcast-bf16",
     .ranks = "num-processes",
     .join = "num-machines,machine-rank,main-process-ip,rdzv-backend",
     .join_options = "--num_machines and --machine_rank",
     .starts_python = true},
    {.files = "deepspeed",
     .modules = "deepspeed.launcher.runner",
     .flags = "module,no-python,no-local-rank,no-ssh,no-ssh-check,force-multi,save-pid,"
              "elastic-training,bind-cores-to-rank,q,quiet,h,help",
     .ranks = "num-gpus,num-accelerators",
     .are_ranks_per_host = true,
     .join = "node-rank,no-ssh",
     .join_options = "--no_ssh and --node_rank",
     .starts_python = true},
    {.files = "mpirun,mpiexec,orterun,prterun,mpirun.openmpi,mpiexec.openmpi,mpirun.mpich,"
              "mpiexec.mpich,mpiexec.hydra,mpirun.hydra",
     .flags = "allow-run-as-root,oversubscribe,tag-output,timestamp-output,v,verbose,q,quiet,l,"
              "display-map,display-allocation,report-bindings,nolocal,nooversubscribe,pernode,"
              "bynode,byslot,bind-to-core,bind-to-socket,genvall,envall,prepend-rank,do-not-launch,"
              "h,help,V,version,info",
     .pairs = "mca,gmca,pmca,prtemca,genv,env",
     .ranks = "np,n,c"},
    {.files = "horovodrun",
     .modules = "horovod.run,horovod.runner.launch",
     .takes_options_of_hvrun = true},
    {.files = "hvrun", .takes_options_of_hvrun = true},
};

bool has_word(std::string_view list, std::string_view word) {
  if (word.empty()) return false;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == word) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

// The launcher, and where its own words begin in argv.
struct FoundKind {
  const LauncherKind* kind = nullptr;
  std::size_t begin = 0;
  std::string name;  // for messages
  bool needs_subcommand = false;
  std::string python = "python3";  // the interpreter that was typed
};

bool needs_subcommand(const LauncherKind& kind, const std::string& file_or_module) {
  return kind.subcommand[0] != '\0' && !has_word(kind.without_subcommand, file_or_module);
}

FoundKind kind_of_file(const std::string& file, std::size_t begin) {
  const std::string name = base_name(file);
  for (const LauncherKind& kind : kKinds)
    if (has_word(kind.files, name)) return {&kind, begin, name, needs_subcommand(kind, name)};
  return {};
}

// "python -m torch.distributed.run", "python -u /opt/bin/torchrun".
FoundKind kind_of_python(const Words& argv) {
  const PythonTarget target = python_target(argv);
  if (!target.script.empty()) {
    FoundKind found = kind_of_file(target.script, target.next);
    found.python = argv[0];
    return found;
  }
  for (const LauncherKind& kind : kKinds)
    if (has_word(kind.modules, target.module))
      return {&kind, target.next, base_name(argv[0]) + " -m " + target.module,
              needs_subcommand(kind, target.module), argv[0]};
  return {};
}

// Whether this call prints something and starts no ranks.
bool is_harmless(const LauncherKind& kind, const Words& words) {
  constexpr const char* kQuestions = "--version,-V,--help,-h";
  constexpr const char* kSubcommands = "check,env,explain,script,--check-build";
  if (words.empty() || has_word(kQuestions, words[0])) return true;
  return kind.takes_options_of_hvrun && has_word(kSubcommands, words[0]);
}

// "--nproc_per_node=4": "nproc-per-node" and "4"; "-n4": "n" and "4".
std::pair<std::string, std::optional<std::string>> name_and_value(const std::string& word) {
  if (word.size() > 2 && word[1] != '-' && parse_integer(word.substr(2)))
    return {word.substr(1, 1), word.substr(2)};
  const std::size_t equals = word.find('=');
  std::string name = word.substr(0, equals);
  name.erase(0, name.find_first_not_of('-'));
  std::replace(name.begin(), name.end(), '_', '-');
  if (equals == std::string::npos) return {name, std::nullopt};
  return {name, word.substr(equals + 1)};
}

// Reads the launcher's options.
class OptionReader {
 public:
  OptionReader(const LauncherKind& kind, const Words& words) : kind_(kind), words_(words) {}

  // python: to run the launcher's script with.
  void read(const std::string& python, NestedLauncher* launcher) {
    for (; at_ < words_.size() && words_[at_].size() > 1 && words_[at_][0] == '-'; ++at_) {
      if (words_[at_] == "--") {
        ++at_;
        break;
      }
      auto [name, value] = name_and_value(words_[at_]);
      if (!value && !has_word(kind_.flags, name)) value = next_value(name);
      take(name, value.value_or(""), launcher);
    }
    // torchrun on one host may have a rendezvous of its own: --nnodes 1 --rdzv-endpoint localhost.
    launcher->joins_several_hosts = has_join_option_ && !is_one_host_;
    if (kind_.starts_python && !is_program_) launcher->program = {python};
    if (kind_.starts_python && is_module_) launcher->program.emplace_back("-m");
    for (; at_ < words_.size(); ++at_) launcher->program.push_back(words_[at_]);
  }

 private:
  std::string next_value(const std::string& name) {
    at_ += has_word(kind_.pairs, name) ? 2 : 1;
    return at_ < words_.size() ? words_[at_] : "";
  }

  void take(const std::string& name, const std::string& value, NestedLauncher* launcher) {
    const auto number = parse_integer(value);
    if (has_word(kind_.ranks, name) && number && *number > 0 && *number <= kMostRanks)
      launcher->ranks = static_cast<int>(*number);
    if (has_word("nnodes,num-machines", name) && (value == "1" || value == "1:1"))
      is_one_host_ = true;
    if (has_word(kind_.join, name)) has_join_option_ = true;
    is_module_ = is_module_ || name == "m" || name == "module";
    is_program_ = is_program_ || name == "no-python";
  }

  const LauncherKind& kind_;
  const Words& words_;
  std::size_t at_ = 0;
  bool is_module_ = false, is_program_ = false, has_join_option_ = false, is_one_host_ = false;
};

// The program behind wrappers, without their words.
Words without_wrappers(const Words& argv) {
  wire::Program program{argv, "/", {}};
  while (const auto inner = wrapped_program(program)) program = *inner;
  return program.argv;
}

bool has_number_of_ranks(const JobSpec& spec) {
  return spec.ranks || spec.placement.map_by.by == MapBy::kPerNode;
}

// "hvrun -np 4 python train.py".
// has_other_hosts: the job may have other hosts than this machine.
std::string suggest_command(const JobSpec& spec, const NestedLauncher& launcher,
                            const Words& options, bool has_other_hosts) {
  if (launcher.has_options_of_hvrun)
    return options.empty() ? format_command({"hvrun"}, launcher.program)
                           : "one hvrun with the options of both, each of them once";
  Words words{"hvrun"};
  words.insert(words.end(), options.begin(), options.end());
  const bool is_per_host = launcher.are_ranks_per_host && has_other_hosts;
  if (launcher.ranks && !has_number_of_ranks(spec)) {
    words.insert(words.end(),
                 {is_per_host ? "--npernode" : "-np", std::to_string(*launcher.ranks)});
    // The launcher does not compare that number with slots.
    if (is_per_host && !spec.placement.oversubscribe) words.emplace_back("--oversubscribe");
  }
  return format_command(words, launcher.program);
}

// "-np 4 python train.py in its place": for one of several programs.
std::string suggest_program(const ProgramSpec& program, const NestedLauncher& launcher) {
  if (launcher.has_options_of_hvrun)
    return "leave out '" + launcher.name + "' and what -np states already";
  const int processes = launcher.ranks.value_or(1) * std::max(program.ranks, 1);
  return format_command({"-np", std::to_string(processes)}, launcher.program) + " in its place";
}

}  // namespace

std::string format_command(Words options, const Words& program) {
  options.insert(options.end(), program.begin(), program.end());
  for (std::string& word : options) word = shell_quote(word);
  return printable(join(options, " "), kMostShownBytes);
}

std::optional<NestedLauncher> find_nested_launcher(const std::vector<std::string>& argv) {
  const Words words = without_wrappers(argv);
  if (words.empty()) return std::nullopt;
  const Words wrappers(argv.begin(), argv.end() - static_cast<std::ptrdiff_t>(words.size()));
  const FoundKind found =
      is_python_name(words[0]) ? kind_of_python(words) : kind_of_file(words[0], 1);
  if (!found.kind) return std::nullopt;
  const LauncherKind& kind = *found.kind;
  Words own(words.begin() + static_cast<std::ptrdiff_t>(std::min(found.begin, words.size())),
            words.end());
  if (is_harmless(kind, own)) return std::nullopt;
  NestedLauncher launcher{found.name};
  if (found.needs_subcommand) {
    if (own.empty() || own[0] != kind.subcommand) return std::nullopt;
    launcher.name += std::string(" ") + kind.subcommand;
    own.erase(own.begin());
  }
  launcher.join_options = kind.join_options;
  launcher.are_ranks_per_host = kind.are_ranks_per_host;
  launcher.has_options_of_hvrun = kind.takes_options_of_hvrun;
  if (kind.takes_options_of_hvrun) {
    launcher.program = own;
  } else {
    OptionReader(kind, own).read(found.python, &launcher);
    launcher.program.insert(launcher.program.begin(), wrappers.begin(), wrappers.end());
  }
  return launcher;
}

void refuse_launcher(const std::vector<std::string>& argv, const SuggestCommand& suggest) {
  const auto launcher = find_nested_launcher(argv);
  if (!launcher || launcher->joins_several_hosts) return;
  std::string hint = suggest(*launcher);
  if (!launcher->join_options.empty())
    hint += "; one " + launcher->name + " on each host needs " + launcher->join_options;
  throw Error(ErrorKind::kUsage,
              "'" + printable(launcher->name) +
                  "' is a launcher, too: each rank would start a whole job of its own",
              hint + "; --nested starts it all the same");
}

void refuse_nested_launchers(const JobSpec& spec, const std::vector<std::string>& options,
                             bool is_in_scheduler_job) {
  if (spec.allows_nested) return;
  const bool has_other_hosts =
      is_in_scheduler_job || !spec.hosts.hosts.empty() || !spec.hosts.hostfile.empty();
  for (const ProgramSpec& program : spec.programs)
    refuse_launcher(program.argv, [&](const NestedLauncher& launcher) {
      return spec.programs.size() > 1 ? suggest_program(program, launcher)
                                      : suggest_command(spec, launcher, options, has_other_hosts);
    });
}

void check_ranks_of_launchers(const JobSpec& spec, const LaunchPlan& plan) {
  if (spec.allows_nested) return;
  for (std::size_t program = 0; program < spec.programs.size(); ++program) {
    const auto launcher = find_nested_launcher(spec.programs[program].argv);
    if (!launcher) continue;
    std::vector<int> ranks_of(plan.hosts.size());
    for (const PlannedRank& rank : plan.ranks)
      if (static_cast<std::size_t>(rank.program) == program)
        ++ranks_of[static_cast<std::size_t>(rank.host)];
    const auto most = std::max_element(ranks_of.begin(), ranks_of.end());
    if (most == ranks_of.end() || *most < 2) continue;
    const std::string& host = plan.hosts[static_cast<std::size_t>(most - ranks_of.begin())].name;
    throw Error(ErrorKind::kUsage,
                "'" + printable(launcher->name) + "' starts the processes of a host itself, and " +
                    host + " has " + std::to_string(*most) + " ranks that would run it",
                "--npernode 1 for one on each host; or leave out " + launcher->name +
                    ", so that hvrun starts the processes itself; --nested starts it all the "
                    "same");
  }
}

}  // namespace hv::launcher
