// Tests of the command line, above all of where the program begins.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/cli/command_line.h"

#include <doctest/doctest.h>

#include "src/base/error.h"

using namespace hv::launcher;
using Words = std::vector<std::string>;
using namespace std::chrono_literals;

namespace {

// As main does: "check" as the first word is the subcommand.
CommandLine parse(const Words& words, const hv::Environment& environment = {}) {
  const auto here = [] { return "/here"; };
  if (!words.empty() && words[0] == "check")
    return parse_check_line({words.begin() + 1, words.end()}, environment, here);
  return parse_command_line(words, environment, here);
}

JobSpec spec_of(const Words& words, const hv::Environment& environment = {}) {
  const CommandLine command = parse(words, environment);
  REQUIRE(std::holds_alternative<LaunchCommand>(command));
  return std::get<LaunchCommand>(command).spec;
}

std::string error_of(const Words& words) {
  try {
    parse(words);
  } catch (const hv::Error& error) {
    CHECK(error.kind() == hv::ErrorKind::kUsage);
    return std::string(error.what()) + " | " + error.hint();
  }
  return "no error";
}

}  // namespace

TEST_CASE("the first word that is neither option nor value is the program") {
  const JobSpec spec = spec_of({"-np", "2", "env"});
  CHECK(spec.ranks == 2);
  CHECK(spec.programs[0].argv == Words{"env"});
}

TEST_CASE("what follows -- is the program, whatever it looks like") {
  CHECK(spec_of({"--", "env"}).programs[0].argv == Words{"env"});
  CHECK(spec_of({"-np", "2", "--", "--odd", "-x"}).programs[0].argv == Words{"--odd", "-x"});
  CHECK(spec_of({"train", "--", "x"}).programs[0].argv == Words{"train", "--", "x"});
}

TEST_CASE("a long option behind one hyphen, as mpirun takes it, is told by its name here") {
  CHECK(error_of({"-np", "2", "-host", "localhost", "./hello"}) ==
        "unknown option -host | did you mean --hosts? 'hvrun --help' lists the options; options of "
        "the program stand behind its name");
  CHECK(error_of({"-rankfile", "ranks", "./hello"}).find("did you mean --rankfile?") !=
        std::string::npos);
  CHECK(error_of({"-verbos", "./hello"}).find("did you mean --verbose?") != std::string::npos);
  for (const char* name : {"-launcher", "-iface", "-prefix", "-pernode", "-npernode", "-vnp"}) {
    CAPTURE(name);
    CHECK(error_of({name, "2", "./hello"}).find("unknown option " + std::string(name) + " |") == 0);
  }
}

TEST_CASE("horovodrun's command line is taken as it is") {
  const CommandLine command = parse({"--verbose",
                                     "-np",
                                     "4",
                                     "-hostfile",
                                     "hosts",
                                     "--output-filename",
                                     "out",
                                     "-p",
                                     "2222",
                                     "-prefix-timestamp",
                                     "--fusion-threshold-mb",
                                     "32",
                                     "--cycle-time-ms",
                                     "3.5",
                                     "-x",
                                     "HVRUN_FUSION_THRESHOLD=1M",
                                     "python",
                                     "train.py",
                                     "--log-level",
                                     "x"});
  REQUIRE(std::holds_alternative<LaunchCommand>(command));
  const auto& [spec, horovod] = std::get<LaunchCommand>(command);
  CHECK(spec.ranks == 4);
  CHECK(spec.hosts.hostfile == "hosts");
  CHECK(spec.output.output_directory == "out");
  CHECK(spec.output.timestamp);
  CHECK(spec.programs[0].argv == Words{"python", "train.py", "--log-level", "x"});
  CHECK(spec.environment.exports ==
        parse_exports({"HVRUN_FUSION_THRESHOLD=32M", "HVRUN_FUSION_THRESHOLD=1M"}));
  CHECK(horovod.variables == parse_exports({"HVRUN_FUSION_THRESHOLD=32M"}));
  CHECK(horovod.warnings.size() == 1);
}

TEST_CASE("options of one letter stand together, the last with its value") {
  CHECK(std::holds_alternative<PrintCommand>(parse({"-vh"})));
  for (const Words& words : {Words{"-vn4", "train"}, Words{"-vn", "4", "train"}}) {
    const JobSpec spec = spec_of(words);
    CHECK(spec.report.verbose);
    CHECK(spec.ranks == 4);
    CHECK(spec.programs[0].argv == Words{"train"});
  }
  CHECK(spec_of({"-n4", "-lroot", "-p22", "-iid", "train"}).programs[0].argv == Words{"train"});
}

TEST_CASE("a summary on standard output is refused, and a file called - is not") {
  CHECK(error_of({"--summary", "-", "train"}).find("name a file, or ./-") != std::string::npos);
  CHECK(spec_of({"--summary", "./-", "train"}).output.summary_file == "./-");
}

TEST_CASE("the help shows a value that only an equals sign introduces as it is typed") {
  const std::string help = std::get<PrintCommand>(parse({"--help"})).text;
  CHECK(help.find("  --dry-run=offline  ") != std::string::npos);
  CHECK(help.find("  --wire-mpi=pmix|pmi|none  ") != std::string::npos);
}

TEST_CASE("by what MPI programs find each other is an option, and a word of its value no program") {
  CHECK(spec_of({"train"}).environment.wire_mpi == WireMpi::kAuto);
  CHECK(spec_of({"--wire-mpi", "train"}).environment.wire_mpi == WireMpi::kBoth);
  CHECK(spec_of({"--wire-mpi", "pmi"}).programs[0].argv[0] == "pmi");
  CHECK(spec_of({"--wire-mpi=pmi", "train"}).environment.wire_mpi == WireMpi::kPmi);
  CHECK(spec_of({"--wire-mpi=pmix", "train"}).environment.wire_mpi == WireMpi::kPmix);
  CHECK(spec_of({"--wire-mpi=none", "train"}).environment.wire_mpi == WireMpi::kNone);
  CHECK(error_of({"--wire-mpi=pmi2", "train"}).find("pmix, pmi or none") != std::string::npos);
}

TEST_CASE("--mpi puts mpi first, and goes with any way of wiring but none") {
  CHECK_FALSE(spec_of({"--wire-mpi", "train"}).environment.mpi_first);
  CHECK(spec_of({"--mpi", "train"}).environment.mpi_first);
  CHECK(spec_of({"--mpi", "train"}).environment.wire_mpi == WireMpi::kAuto);
  CHECK(spec_of({"--mpi", "--wire-mpi=pmi", "train"}).environment.wire_mpi == WireMpi::kPmi);
  CHECK(error_of({"--mpi", "--wire-mpi=none", "train"}).find("leave one of them out") !=
        std::string::npos);
}

TEST_CASE("options behind the program are the program's") {
  const JobSpec spec = spec_of({"--dry-run=offline", "train", "--np", "3", "-H", "x", "--help"});
  CHECK_FALSE(spec.ranks.has_value());
  CHECK(spec.hosts.hosts.empty());
  CHECK(spec.report.dry_run == DryRun::kOffline);
  CHECK(spec.programs[0].argv == Words{"train", "--np", "3", "-H", "x", "--help"});
}

TEST_CASE("an unknown option is an error with the nearest name") {
  CHECK(error_of({"--nmu", "3", "train"}).find("did you mean --np?") != std::string::npos);
  CHECK(error_of({"--verbos", "train"}).find("--verbose") != std::string::npos);
  CHECK(error_of({"-Z", "train"}).find("unknown option -Z") != std::string::npos);
}

TEST_CASE("options of other launchers are told by what they are here") {
  const std::vector<std::pair<Words, const char*>> cases{
      {{"-N", "2", "t"}, "mpirun's -N is --npernode here"},
      {{"-ppn", "2", "t"}, "that is -np here on one machine, and --npernode on several"},
      {{"-f", "hosts", "t"}, "that is --hostfile here"},
      {{"--nproc-per-node", "4", "t"}, "-np here on one machine, and --npernode on several"},
      {{"--nproc_per_node=4", "t"}, "-np here on one machine, and --npernode on several"},
      {{"--nnodes", "2", "t"}, "as many hosts as -H"},
      {{"--mca", "btl", "tcp", "t"}, "MPI starts nothing here"},
      {{"-mca", "btl", "tcp", "t"}, "MPI starts nothing here"},
      {{"--mpi", "--mpi-args", "--mca btl ^openib", "t"}, "start the program by mpirun itself"},
      {{"--mpi-args=--mca btl ^openib", "t"}, "-x OMPI_MCA_NAME=VALUE"},
      {{"-mpi-args=--mca btl ^openib", "t"}, "-x OMPI_MCA_NAME=VALUE"},
      {{"-iface", "eth0", "t"}, "that is HVRUN_INTERFACES here"},
      {{"-c", "2", "t"}, "mpirun's -c is -np here"}};
  for (const auto& [words, expected] : cases) {
    CAPTURE(expected);
    CHECK(error_of(words).find(expected) != std::string::npos);
  }
  CHECK(error_of({"-np", "1", "a", ":", "-ppn", "2", "b"}).find("unknown option -ppn behind") == 0);
}

TEST_CASE("nobody guesses at an option of one letter") {
  CHECK(error_of({"-Z", "train"}).find("did you mean") == std::string::npos);
  CHECK(error_of({"-t", "9", "train"}).find("srun's is --timeout") != std::string::npos);
}

TEST_CASE("every spelling of -np counts") {
  for (const Words& words : {Words{"-np", "3", "t"}, Words{"-n", "3", "t"}, Words{"-n3", "t"},
                             Words{"--np", "3", "t"}, Words{"--np=3", "t"}, Words{"-np=3", "t"},
                             Words{"-np3", "t"}, Words{"--num-proc=3", "t"}}) {
    CAPTURE(words[0]);
    CHECK(spec_of(words).ranks == 3);
    CHECK(spec_of(words).programs[0].argv == Words{"t"});
  }
}

TEST_CASE("an optional value is taken only behind =") {
  CHECK(spec_of({"--dry-run", "train"}).report.dry_run == DryRun::kHosts);
  CHECK(spec_of({"check", "-H", "a"}).report.dry_run == DryRun::kHosts);
  CHECK(spec_of({"check", "--format", "json"}).report.format == PlanFormat::kJson);
  CHECK(spec_of({"check", "--topology-svg", "a.svg"}).report.topology_svg == "a.svg");
  CHECK(spec_of({"--dry-run", "--topology-html", "a.html", "t"}).report.topology_html == "a.html");
  CHECK(error_of({"check", "train"}).find("hvrun --dry-run") != std::string::npos);
  CHECK(error_of({"check", "--dry-run"}).find("leave --dry-run out") != std::string::npos);
  CHECK(error_of({"--dry-run=online", "train"}).find("--dry-run=offline") != std::string::npos);
}

TEST_CASE("a value behind = that is empty is an error, as where a shell variable is unset") {
  for (const std::string option : {"--stdin", "--dry-run", "--wire-mpi", "--np", "--no-label"}) {
    CAPTURE(option);
    CHECK(error_of({"-np", "2", option + "=", "t"}) ==
          option +
              " has an empty value | give it one, or leave the option out; is a shell "
              "variable unset?");
  }
  CHECK(spec_of({"--stdin=1", "t", "--stdin="}).programs[0].argv == Words{"t", "--stdin="});
  CHECK(spec_of({"-xA=", "t"}).environment.exports == parse_exports({"A="}));
}

TEST_CASE("mpirun's --stdin with a rank in the next word is an error that names the form here") {
  CHECK(error_of({"-np", "2", "--stdin", "0", "./train"}) ==
        "--stdin takes a value only behind '=', so '0' would be the program | --stdin=0; for a "
        "program called 0: --stdin -- 0");
  CHECK(error_of({"--stdin", "12"}).find("| --stdin=12;") != std::string::npos);
  CHECK(error_of({"--stdin", "none", "t"}).find("leave --stdin out") != std::string::npos);
  CHECK(error_of({"--stdin", "all", "t"}).find("--stdin=RANK") != std::string::npos);
  CHECK(spec_of({"--stdin", "--", "0"}).programs[0].argv == Words{"0"});
  CHECK(spec_of({"--stdin", "./0"}).output.stdin_rank == 0);
  CHECK(spec_of({"--stdin", "-np", "2", "0"}).programs[0].argv == Words{"0"});
}

TEST_CASE("values may hold anything, also what looks like an option") {
  const JobSpec spec = spec_of(
      {"-x", "A=--np 3", "-x", "B=1 2\n3", "--rsh", "ssh -J gate", "--wdir", "sub dir", "t"});
  CHECK(spec.environment.exports == parse_exports({"A=--np 3", "B=1 2\n3"}));
  CHECK(spec.access.remote_shell == "ssh -J gate");
  CHECK(spec.programs[0].working_directory == "/here/sub dir");
  CHECK(spec_of({"-x", "-np", "t"}).environment.exports == parse_exports({"-np"}));
}

TEST_CASE("ranks to show come in any order, each once") {
  CHECK(spec_of({"t"}).output.shown_ranks.empty());
  const OutputSpec output = spec_of({"--ranks", "9-10,0,8-9", "t"}).output;
  CHECK(output.shown_ranks == std::vector<int>{0, 8, 9, 10});
  CHECK(output.shows(8));
  CHECK_FALSE(output.shows(1));
  for (const std::string list : {"1,", ",1", "1,,2", "1-", "1-,2"})
    CHECK(error_of({"--ranks", list, "t"}) ==
          "--ranks '" + list +
              "' lacks a number beside a comma or hyphen | expected numbers and "
              "ranges, such as 0,8-15");
}

TEST_CASE("a variable before the program is an error that names -x") {
  CHECK(error_of({"-np", "2", "LR=0.1", "./train"}) ==
        "'LR=0.1' stands where the program is expected | -x LR=0.1 sets the variable for the "
        "ranks; './LR=0.1' is a program of that name");
  CHECK(error_of({"-np", "1", "t", ":", "-np", "1", "A_1=", "t"}).find("'A_1=' stands") == 0);
  CHECK(error_of({"-H", "a", "port=2201", "t"}) ==
        "'port=2201' stands where the program is expected, and -H takes names and slots only | a "
        "hostfile (--hostfile) with a line such as 'node1 port=2201'; -x port=2201 sets a variable "
        "for the ranks");
  CHECK(error_of({"port=2201", "t"}).find("| -x port=2201 sets the variable") != std::string::npos);
  CHECK(error_of({"--format", "json", "env"}).find("hvrun env --format json") != std::string::npos);
  CHECK(spec_of({"./LR=0.1"}).programs[0].argv == Words{"./LR=0.1"});
  CHECK(spec_of({"1x=y"}).programs[0].argv == Words{"1x=y"});
}

TEST_CASE("a flag takes no value but true and false") {
  CHECK(error_of({"--timestamp=utc", "t"}).find("--timestamp takes no value, and has 'utc' |") ==
        0);
  CHECK(spec_of({"--timestamp=true", "t"}).output.timestamp);
  CHECK(!spec_of({"--timestamp=false", "t"}).output.timestamp);
}

TEST_CASE("every option lands in its field") {
  const JobSpec spec = spec_of({"-H",
                                "a:2",
                                "-p",
                                "2222",
                                "-i",
                                "key",
                                "-l",
                                "me",
                                "--ssh-accept-new",
                                "--start-timeout",
                                "5",
                                "--clean-env",
                                "--master-port",
                                "1234",
                                "--no-hold-port",
                                "--no-label",
                                "--no-training-summary",
                                "--timestamp",
                                "--output-dir",
                                "out",
                                "--pty",
                                "--grace",
                                "500ms",
                                "--lost-after",
                                "2",
                                "--timeout",
                                "60",
                                "--dry-run=offline",
                                "--format",
                                "json",
                                "-v",
                                "--summary",
                                "s.json",
                                "t"});
  CHECK(spec.hosts.hosts == "a:2");
  CHECK(spec.access.ssh_port == 2222);
  CHECK(spec.access.ssh_identity_file == "key");
  CHECK(spec.access.ssh_user == "me");
  CHECK(spec.access.ssh_accept_new);
  CHECK(spec.access.start_timeout == 5s);
  CHECK(spec.environment.clean_environment);
  CHECK(spec.environment.master_port == 1234);
  CHECK_FALSE(spec.environment.hold_port);
  CHECK_FALSE(spec.output.label);
  CHECK_FALSE(spec.output.training_summary);
  CHECK(spec.output.timestamp);
  CHECK(spec.output.output_directory == "out");
  CHECK(spec_of({"--stdin", "t"}).output.stdin_rank == 0);
  CHECK(spec.output.pty);
  CHECK(spec.ending.grace == 500ms);
  CHECK(spec.ending.lost_after == 2s);
  CHECK(spec.ending.timeout == std::optional<hv::Duration>(60s));
  CHECK(spec.report.dry_run == DryRun::kOffline);
  CHECK(spec.report.format == PlanFormat::kJson);
  CHECK(spec.report.verbose);
  CHECK(spec.output.summary_file == "s.json");
}

TEST_CASE("results go to the descriptor that is named, and to none by default") {
  CHECK_FALSE(spec_of({"t"}).output.result_fd);
  CHECK(spec_of({"--result-fd", "7", "t"}).output.result_fd == 7);
}

TEST_CASE("values that make no sense are errors naming option and value") {
  const std::vector<std::pair<Words, const char*>> cases{
      {{"-np", "0", "t"}, "-np '0' is too small: at least 1 is wanted | expected a whole number"},
      {{"-np", "9999999", "t"}, "-np '9999999' is too large: at most 1048576 is wanted"},
      {{"-np", "two", "t"}, "-np 'two'"},
      {{"-p", "70000", "t"}, "'70000'"},
      {{"--grace", "soon", "t"}, "'soon'"},
      {{"--format", "xml", "t"}, "'xml'"},
      {{"--result-fd", "2", "t"}, "--result-fd '2' is too small: at least 3 is wanted"},
      {{"--lost-after", "0", "t"}, "--lost-after"},
      {{"--restarts", "-1", "t"}, "--restarts '-1'"},
      {{"--restarts", "1", "--stdin", "t"}, "--restarts starts ranks again, and the input"},
      {{"--restarts", "1", "--result-fd", "7", "t"}, "--restarts starts ranks again, and rank 0"},
      {{"-np"}, "-np needs a value"},
      {{"-np", "2", "-np", "3", "t"}, "--np,--num-proc is given 2 times"},
      {{"--format", "json", "t"}, "add --dry-run"},
      {{"--topology-svg", "a", "t"}, "--topology-svg shows what hosts tell"},
      {{"--topology-html", "a", "--dry-run=offline", "t"}, "add --dry-run"},
      {{"check", "--topology-html", "a", "--topology-svg", "a"}, "name two files"},
      {{"check", "--topology-html", ""}, "--topology-html"},
      {{}, "no program"},
      {{"-np", "2"}, "no program"},
      {{"--map-by", "rack", "t"}, "--map-by 'rack'"},
      {{"--map-by", "node", "--npernode", "2", "t"}, "--map-by and --npernode"},
      {{"--npernode", "0", "t"}, "--npernode '0'"},
      {{"--rank-by", "gpu", "t"}, "--rank-by 'gpu'"},
      {{"--gpus-per-rank", "0", "t"}, "--gpus-per-rank '0'"},
      {{"--rankfile", "r", "--map-by", "slot", "t"}, "--rankfile says where"}};
  for (const auto& [words, expected] : cases) {
    CAPTURE(expected);
    CHECK(error_of(words).find(expected) != std::string::npos);
  }
}

TEST_CASE("--help and --version are texts") {
  const CommandLine help = parse({"--help"});
  REQUIRE(std::holds_alternative<PrintCommand>(help));
  const std::string& text = std::get<PrintCommand>(help).text;
  for (const char* word :
       {"Usage: hvrun", "Ranks and hosts", "--hostfile", "--lost-after", "Examples"}) {
    CAPTURE(word);
    CHECK(text.find(word) != std::string::npos);
  }
  CHECK(std::get<PrintCommand>(parse({"--version"})).text.find("hvrun 0.") == 0);
}

TEST_CASE("several programs are one job, each with its ranks, variables and directory") {
  const JobSpec spec =
      spec_of({"-np", "1",  "-x",  "ALL=1",     "--wdir", "/w", "serve", "-v", ":",   "-np",
               "4",   "-x", "A=1", "--wdir=/v", "train",  "--", "x",     ":",  "-n2", "watch"});
  REQUIRE(spec.programs.size() == 3);
  CHECK(spec.ranks == 7);
  CHECK(spec.programs[0].argv == Words{"serve", "-v"});
  CHECK(spec.programs[0].ranks == 1);
  CHECK(spec.programs[1].argv == Words{"train", "--", "x"});
  CHECK(spec.programs[1].exports == parse_exports({"A=1"}));
  CHECK(spec.programs[1].working_directory == "/v");
  CHECK(spec.programs[2].ranks == 2);
  CHECK(spec.programs[2].working_directory == "/w");
  CHECK(spec.environment.exports == parse_exports({"ALL=1"}));
}

TEST_CASE("behind -- a colon is an argument like any other") {
  CHECK(spec_of({"--", "cut", ":", "b"}).programs.size() == 1);
  const JobSpec spec = spec_of({"-np", "1", "a", ":", "-np", "1", "--", "b", ":", "c"});
  REQUIRE(spec.programs.size() == 2);
  CHECK(spec.programs[1].argv == Words{"b", ":", "c"});
}

TEST_CASE("what is missing of several programs is said") {
  const std::vector<std::pair<Words, const char*>> cases{
      {{"-np", "1", "a", ":", "b"}, "how many ranks run b"},
      {{"a", ":", "-np", "1", "b"}, "how many ranks run a"},
      {{"-np", "1", "a", ":"}, "no program stands behind ':'"},
      {{"-np", "1", "a", ":", "-np", "2"}, "no program stands behind ':'"},
      {{"-np", "1", "a", ":", ":", "b"}, "no program stands behind ':'"},
      {{"-np", "1", "a", ":", "-H", "x", "b"}, "unknown option -H behind ':'"},
      {{"-np", "1", "a", ":", "-np"}, "-np needs a value behind ':'"},
      {{"-np", "1", "a", ":", "-np", "0", "b"}, "-np '0'"},
      {{"-np", "1", "a", ":", "-np", "1", "-n2", "b"}, "-np is given twice"},
      {{"-np", "1", "a", ":", "-np", "1", "--wdir", "", "b"}, "--wdir behind ':' has an empty"},
      {{"-np", "1048576", "a", ":", "-np", "1", "b"}, "1048577 ranks in all"},
      {{":", "-np", "1", "b"}, "no program to run"}};
  for (const auto& [words, expected] : cases) {
    CAPTURE(expected);
    CHECK(error_of(words).find(expected) != std::string::npos);
  }
}

TEST_CASE("a job starts again as often as --restarts says, after the knob's delay") {
  CHECK(spec_of({"t"}).ending.restarts == 0);
  CHECK(spec_of({"--restarts", "3", "t"}).ending.restarts == 3);
  CHECK(spec_of({"--restarts", "3", "t"}).ending.restart_delay == 1s);
  CHECK(spec_of({"--restarts", "0", "--stdin", "t"}).ending.restarts == 0);
  hv::Environment environment;
  environment.set("HVRUN_RESTART_DELAY", "250ms");
  const JobSpec spec = std::get<LaunchCommand>(parse({"t"}, environment)).spec;
  CHECK(spec.ending.restart_delay == 250ms);
}

TEST_CASE("the time for an inventory is the knob's") {
  const auto spec_with = [](const std::string& value, std::vector<std::string> words = {"t"}) {
    hv::Environment environment;
    if (!value.empty()) environment.set("HVRUN_INVENTORY_TIMEOUT", value);
    return std::get<LaunchCommand>(parse(words, environment)).spec;
  };
  CHECK(spec_with("").access.inventory_timeout == 20s);
  CHECK(spec_with("500ms").access.inventory_timeout == 500ms);
  CHECK(spec_with("0").access.inventory_timeout == 0s);
  CHECK_THROWS_AS(spec_with("soon"), hv::Error);
  CHECK(spec_with("", {"check"}).access.inventory_timeout == 5s);
  CHECK(spec_with("", {"--dry-run", "t"}).access.inventory_timeout == 5s);
  CHECK(spec_with("30", {"check"}).access.inventory_timeout == 30s);
}

TEST_CASE("options of placement and binding become a spec, and nonsense is an error") {
  const JobSpec spec =
      spec_of({"--map-by", "ppr:2:node", "--rank-by", "node", "--gpus-per-rank", "2",
               "--oversubscribe", "--bind-to", "numa", "--nic-bind", "--report-bindings", "t"});
  CHECK(spec.placement.map_by.by == MapBy::kPerNode);
  CHECK(spec.placement.rank_by == RankBy::kNode);
  CHECK(spec.placement.bind_to == BindTo::kNuma);
  CHECK(spec.placement.oversubscribe);
  CHECK(spec.placement.nic_bind);
  CHECK(spec.report.report_bindings);
  CHECK(spec.placement.sees_only_its_gpus);  // by itself where a rank has several
  CHECK_FALSE(
      spec_of({"--gpus-per-rank", "2", "--gpu-bind=all", "t"}).placement.sees_only_its_gpus);
  CHECK(spec_of({"--gpu-bind", "visible", "t"}).placement.sees_only_its_gpus);
  CHECK(spec_of({"t"}).placement.bind_to == BindTo::kAuto);
  CHECK(error_of({"--bind-to", "socket", "t"}).find("--bind-to 'socket'") != std::string::npos);
  CHECK(error_of({"--gpu-bind", "none", "t"}).find("--gpu-bind 'none'") != std::string::npos);
}

TEST_CASE("a time limit leaves time to run") {
  CHECK(error_of({"--timeout", "0", "t"}) ==
        "--timeout 0 leaves no time to run | leave it out where the job may run as long as it "
        "takes");
}

TEST_CASE("an exported MASTER_PORT counts as --master-port, and an outer hvrun's does not") {
  const auto port = [](const std::vector<std::string>& words,
                       const std::vector<std::string>& entries) {
    return spec_of(words, hv::Environment::from_entries(entries)).environment.master_port;
  };
  CHECK(port({"a"}, {"MASTER_PORT=29511"}) == 29511);
  CHECK(port({"--master-port", "29512", "a"}, {"MASTER_PORT=29511"}) == 29512);
  CHECK(port({"a"}, {"MASTER_PORT="}) == 0);
  CHECK(port({"--clean-env", "a"}, {"MASTER_PORT=29511"}) == 0);
  CHECK(port({"a"}, {"MASTER_PORT=29511", "HVRUN_RANK=0"}) == 0);
  for (const char* text : {"MASTER_PORT=70000", "MASTER_PORT=x"})
    CHECK_THROWS_WITH_AS(port({"a"}, {text}), doctest::Contains("MASTER_PORT '"), hv::Error);
}
