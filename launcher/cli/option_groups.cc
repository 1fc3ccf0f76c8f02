// SPDX-License-Identifier: Apache-2.0
#include "launcher/cli/option_groups.h"

#include <algorithm>

#include "launcher/cli/knobs.h"
#include "src/base/check.h"

namespace hv::launcher {
namespace {

// Adds the default of the knob that sets the option's default.
std::string text_with_default(const std::string& text, std::string_view knob) {
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
  app.add_option("--map-by", raw.placement.map_by,
                 "slot, node, gpu, numa or ppr:N:node (default: slot)")
      ->group(group)
      ->type_name("RULE");
  app.add_option("--rank-by", raw.placement.rank_by,
                 "number ranks by slot or node (default: as mapped)")
      ->group(group)
      ->type_name("RULE");
  app.add_option("--npernode", raw.placement.npernode, "so many ranks on each host: ppr:N:node")
      ->group(group)
      ->type_name("N");
  app.add_option("--gpus-per-rank", raw.placement.gpus_per_rank,
                 "GPUs of each rank (default: 1 where there is one)")
      ->group(group)
      ->type_name("N");
  app.add_option("--rankfile", raw.hosts.rankfile,
                 "file with a line per rank: rank 0=node1 slot=0-3")
      ->group(group)
      ->type_name("FILE");
  app.add_flag("--oversubscribe", raw.placement.oversubscribe,
               "more ranks than slots may share a host")
      ->group(group);
}

void add_binding_options(CLI::App& app, RawOptions& raw) {
  const char* group = "Binding";
  app.add_option("--bind-to", raw.placement.bind_to,
                 "cores of a rank: none, core, numa or gpu (default: near its GPU, else a share)")
      ->group(group)
      ->type_name("WHAT");
  app.add_option("--gpu-bind", raw.placement.gpu_bind,
                 "a rank sees all of the job's GPUs, or its own: visible")
      ->group(group)
      ->type_name("all|visible");
  app.add_flag("--nic-bind", raw.placement.nic_bind,
               "NCCL and UCX use the RDMA adapters near a rank's GPU")
      ->group(group);
  app.add_flag("--report-bindings", raw.report.report_bindings,
               "say which cores and GPUs each rank has")
      ->group(group);
}

void add_ssh_options(CLI::App& app, RawOptions& raw) {
  const char* group = "Reaching hosts";
  app.add_option("-p,--ssh-port", raw.access.ssh_port, "port of the hosts' sshd")
      ->group(group)
      ->type_name("PORT");
  app.add_option("-i,--ssh-identity-file", raw.access.ssh_identity_file,
                 "private key to log in with")
      ->group(group)
      ->type_name("FILE");
  app.add_option("-l,--ssh-user", raw.access.ssh_user, "user to log in as")
      ->group(group)
      ->type_name("USER");
  app.add_flag("--ssh-accept-new", raw.access.ssh_accept_new,
               "accept and remember keys of hosts never seen before")
      ->group(group);
  app.add_option("--rsh", raw.access.remote_shell,
                 "reach hosts by 'CMD host command' instead, such as 'ssh -J gate'")
      ->group(group)
      ->type_name("CMD");
  app.add_option("--spawner", raw.access.spawner,
                 "start agents by ssh, or by srun (default: srun on the nodes of a Slurm job)")
      ->group(group)
      ->type_name("ssh|srun");
  app.add_option("--start-timeout", raw.access.start_timeout,
                 text_with_default("seconds a host has to answer", "HVRUN_START_TIMEOUT"))
      ->group(group)
      ->type_name("SECONDS");
}

void add_environment_options(CLI::App& app, RawOptions& raw) {
  const char* group = "What ranks are born with";
  app.add_option("-x", raw.environment.exports,
                 "variable for the ranks: NAME, NAME=VALUE or 'PREFIX_*'; repeatable")
      ->group(group)
      ->type_name("NAME[=VALUE]")
      ->expected(1)
      ->take_all();
  app.add_flag("--clean-env", raw.environment.clean_environment,
               "ranks get the host's login variables and -x only")
      ->group(group);
  app.add_option("--wdir", raw.working_directory,
                 "working directory of the ranks (default: this one)")
      ->group(group)
      ->type_name("DIR");
  app.add_flag("--nested", raw.nested,
               "the program may be another launcher: torchrun, mpirun, accelerate launch, ...")
      ->group(group);
  app.add_option("--master-port", raw.environment.master_port,
                 "MASTER_PORT (default: that of the environment, else a free one)")
      ->group(group)
      ->type_name("PORT");
  app.add_flag(
         "--mpi", raw.environment.mpi,
         "MPI moves the data where it can: mpi is first in HVRUN_BACKEND, unless that names it")
      ->group(group);
  app.add_option(
         "--wire-mpi", raw.environment.wire_mpi,
         "MPI programs find each other, by one or both (default: where HVRUN_BACKEND names mpi)")
      ->group(group)
      ->type_name("=pmix|pmi|none")
      ->expected(0, 1);
  app.add_flag("--horovod-names", raw.environment.horovod_names,
               "ranks get HOROVOD_RANK and its kin, too; what horovodrun is called with")
      ->group("");
  app.add_flag("--no-hold-port", raw.environment.no_hold_port,
               "do not reserve MASTER_PORT, for programs that bind it without SO_REUSEADDR")
      ->group(group);
}

void add_output_options(CLI::App& app, RawOptions& raw) {
  const char* group = "Output and input";
  app.add_option("--label", raw.output.label, "what is before each line: [rank], or [rank host]")
      ->group(group)
      ->type_name("rank|host");
  app.add_flag("--no-label", raw.output.no_label, "no [rank] before each line")->group(group);
  app.add_flag("--timestamp", raw.output.timestamp, "time at the source before each line")
      ->group(group);
  app.add_option("--ranks", raw.output.shown_ranks,
                 "show only these ranks' output here: 0,8-15 (default: all)")
      ->group(group)
      ->type_name("LIST");
  app.add_flag("--no-training-summary", raw.output.no_training_summary,
               "do not say at the end what bounded a training")
      ->group(group);
  app.add_option("--output-dir", raw.output.output_directory,
                 "also write DIR/rank.N/stdout and stderr")
      ->group(group)
      ->type_name("DIR");
  app.add_option("--stdin", raw.output.stdin_rank,
                 "hand standard input to rank 0, or to that rank (else /dev/null)")
      ->group(group)
      ->type_name("=RANK")
      ->expected(0, 1);
  app.add_option("--result-fd", raw.output.result_fd,
                 "write what rank 0 writes to HVRUN_RESULT_FD to this open descriptor (hvrun.run)")
      ->group(group)
      ->type_name("N");
  app.add_flag("--pty", raw.output.pty,
               "each rank gets a terminal; both its streams arrive as stdout")
      ->group(group);
}

void add_ending_options(CLI::App& app, RawOptions& raw) {
  const char* group = "Ending";
  app.add_option("--grace", raw.ending.grace,
                 text_with_default("seconds between SIGTERM and SIGKILL", "HVRUN_GRACE"))
      ->group(group)
      ->type_name("SECONDS");
  app.add_option("--lost-after", raw.ending.lost_after,
                 text_with_default("seconds of silence after which a host counts as lost",
                                   "HVRUN_LOST_AFTER"))
      ->group(group)
      ->type_name("SECONDS");
  app.add_option("--timeout", raw.ending.timeout, "seconds the job may run (default: no limit)")
      ->group(group)
      ->type_name("SECONDS");
  app.add_option("--restarts", raw.ending.restarts,
                 "start the job again when a rank fails or a host is lost, up to N times")
      ->group(group)
      ->type_name("N");
}

void add_report_options(CLI::App& app, RawOptions& raw) {
  const char* group = "Asking and telling";
  app.add_option("--dry-run", raw.report.dry_run,
                 "ask the hosts whether the job would start and run well, and start nothing; "
                 "offline: print the plan, connect to nothing")
      ->group(group)
      ->type_name("=offline")
      ->expected(0, 1);
  app.add_option("--format", raw.report.format, "of what a dry run or a check prints: text or json")
      ->group(group)
      ->type_name("text|json");
  app.add_option("--topology-html", raw.report.topology_html,
                 "page for a browser: the hosts with their GPUs, links and ranks, and the findings")
      ->group(group)
      ->type_name("FILE");
  app.add_option("--topology-svg", raw.report.topology_svg, "that picture alone")
      ->group(group)
      ->type_name("FILE");
  app.add_flag("-v,--verbose", raw.report.verbose, "each phase with its time")->group(group);
  app.add_option("--summary", raw.output.summary_file, "write the end of the job as JSON")
      ->group(group)
      ->type_name("FILE");
  app.add_flag("--check-build", raw.check_build,
               "frameworks and backends that are here, and why one is not; also -cb")
      ->group(group);
  app.add_flag("--version", raw.version, "print hvrun's version")->group(group);
  app.add_flag("-h,--help", raw.help, "print this help")->group(group);
}

// horovodrun's names for options of hvrun.
void add_horovodrun_names(CLI::App& app, RawOptions& raw) {
  app.add_option("--output-filename", raw.output.output_directory)->group("");
  app.add_flag("--prefix-timestamp,--prefix-output-with-timestamp", raw.output.timestamp)
      ->group("");
}

}  // namespace

void add_options(CLI::App& app, RawOptions& raw) {
  app.set_help_flag();  // removes CLI11's; --help is added below
  add_host_options(app, raw);
  add_mapping_options(app, raw);
  add_binding_options(app, raw);
  add_ssh_options(app, raw);
  add_environment_options(app, raw);
  add_output_options(app, raw);
  add_ending_options(app, raw);
  add_report_options(app, raw);
  add_horovodrun_names(app, raw);
}

}  // namespace hv::launcher
