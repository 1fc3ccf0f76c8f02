// SPDX-License-Identifier: Apache-2.0
#include "launcher/cli/script_options.h"

namespace hv::launcher {
namespace {

void add_layout_options(CLI::App& app, RawScriptOptions& raw) {
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

void add_site_options(CLI::App& app, RawScriptOptions& raw) {
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

void add_job_options(CLI::App& app, RawScriptOptions& raw) {
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

void add_script_telling_options(CLI::App& app, RawScriptOptions& raw) {
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

}  // namespace

void add_script_options(CLI::App& app, RawScriptOptions& raw) {
  app.set_help_flag();  // ours, as with hvrun's own
  add_layout_options(app, raw);
  add_site_options(app, raw);
  add_job_options(app, raw);
  add_script_telling_options(app, raw);
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

}  // namespace hv::launcher
