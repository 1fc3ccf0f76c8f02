// Tests of horovodrun's options under their own names, and of its --config-file.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/cli/horovod_options.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "launcher/cli/horovod_config.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "src/contract/runtime_knobs.h"

using namespace hv::launcher;
using Words = std::vector<std::string>;

namespace {

struct Parsed {
  std::string variables, warnings;
};

// config: the text of "conf.yaml".
Parsed parse_horovod(Words words, const std::string& config = "") {
  CLI::App app;
  HorovodOptions options;
  options.add_to(app);
  std::reverse(words.begin(), words.end());
  app.parse(words);
  const HorovodSettings settings = options.settings(config, "conf.yaml");
  Words variables;
  for (const Export& each : settings.variables.list()) {
    CHECK(each.form == Export::Form::kValue);
    variables.push_back(each.name + "=" + each.value);
  }
  return {hv::join(variables, " "), hv::join(settings.warnings, "; ")};
}

std::string horovod_error(const Words& words, const std::string& config = "") {
  try {
    parse_horovod(words, config);
  } catch (const hv::Error& error) {
    CHECK(error.kind() == hv::ErrorKind::kUsage);
    return std::string(error.what()) + " | " + error.hint();
  }
  return "no error";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("each option of horovodrun's sets what it means here") {
  struct Case {
    Words words;
    const char* variables;
  };
  const std::vector<Case> cases{
      {{}, ""},
      {{"--fusion-threshold-mb", "32"}, "HVRUN_FUSION_THRESHOLD=32M"},
      {{"--cache-capacity", "2048"}, "HVRUN_CACHE_CAPACITY=2048"},
      {{"--timeline-filename", "/tmp/t.json"}, "HVRUN_TIMELINE=/tmp/t.json"},
      {{"--stall-check-warning-time-seconds", "20"}, "HVRUN_STALL_SECONDS=20"},
      {{"--stall-check-shutdown-time-seconds=40"}, "HVRUN_STALL_SHUTDOWN_SECONDS=40"},
      {{"--no-stall-check"}, "HVRUN_STALL_SECONDS=0"},
      {{"--log-level", "WARNING"}, "HVRUN_LOG_LEVEL=WARNING"},
      {{"--network-interface", "eth0,ib0"}, "HVRUN_INTERFACES=eth0,ib0"},
      {{"--network-interfaces", "eth0"}, "HVRUN_INTERFACES=eth0"},
      {{"--network-interface", "eth0", "--network-interfaces", "eth1,ib0"},
       "HVRUN_INTERFACES=eth0,eth1,ib0"},
      {{"--tcp"}, "NCCL_IB_DISABLE=1"},
      {{"--stall-check", "--no-autotune"}, ""},
  };
  for (const Case& each : cases) {
    CAPTURE(hv::join(each.words, " "));
    const Parsed parsed = parse_horovod(each.words);
    CHECK(parsed.variables == each.variables);
    CHECK(parsed.warnings == "");
  }
}

TEST_CASE("what has nothing to set here is taken, and told why") {
  const Parsed parsed = parse_horovod({"--cycle-time-ms", "5", "--gloo", "--autotune"});
  CHECK(parsed.variables == "");
  CHECK(parsed.warnings ==
        "--cycle-time-ms sets nothing: there are no cycles: what is ready goes at once; "
        "--autotune sets nothing: nothing is tuned while the job runs; "
        "--gloo sets nothing: hvrun connects the ranks; no controller is needed");
}

TEST_CASE("a variable of Horovod's without effect sets no knob, and says why") {
  std::set<std::string> aliases;
  std::map<std::string, std::string> reasons;
  for (const hv::Knob& knob : hv::runtime_knobs()) aliases.insert({knob.alias, knob.off_switch});
  for (const IgnoredVariable& variable : ignored_horovod_variables()) {
    CAPTURE(variable.name);
    CHECK(std::string(variable.name).rfind("HOROVOD_", 0) == 0);
    CHECK(aliases.count(variable.name) == 0);
    CHECK(std::string(variable.reason).back() == '.');
    CHECK(reasons.emplace(variable.name, variable.reason).second);
  }
  CHECK(reasons.size() == 15);
  CHECK(has(reasons["HOROVOD_CYCLE_TIME"], "There are no cycles"));
  CHECK(has(reasons["HOROVOD_HIERARCHICAL_ALLREDUCE"], "Hosts reduce inside first"));
}

TEST_CASE("what hvrun cannot do is refused with what to do instead") {
  CHECK(has(horovod_error({"--max-np", "2"}), "--max-np is horovodrun's, and not there in hvrun"));
  CHECK(has(horovod_error({"--host-discovery-script=./x"}), "elastic jobs are not there yet"));
}

TEST_CASE("a malformed value is told with the option") {
  CHECK(has(horovod_error({"--fusion-threshold-mb", "much"}),
            "--fusion-threshold-mb 'much' is no number of MiB"));
  CHECK(has(horovod_error({"--log-level", "loud"}), "--log-level: "));
  CHECK(has(horovod_error({}, "params:\n  cache_capacity: -1\n"),
            "conf.yaml:2:19: params.cache_capacity: "));
}

TEST_CASE("the file of --config-file says the same, and the command line beats it") {
  const std::string config =
      "controller: gloo\n"
      "params:\n  fusion_threshold_mb: 32\n  cycle-time-ms: 10\n  cache_capacity: 2048\n"
      "  hierarchical_allreduce: true\n  hierarchical_allgather: false\n"
      "autotune:\n  enabled: false\n  log_file:\n"
      "timeline:\n  filename: 'line.json'\n  mark_cycles: no\n"
      "stall_check:\n  enabled: true\n  warning_time_seconds: 120\n  shutdown_time_seconds: 240\n"
      "logging:\n  level: INFO\n";
  const Parsed parsed = parse_horovod({"--cache-capacity", "7"}, config);
  CHECK(parsed.variables ==
        "HVRUN_FUSION_THRESHOLD=32M HVRUN_TIMELINE=line.json HVRUN_STALL_SECONDS=120 "
        "HVRUN_STALL_SHUTDOWN_SECONDS=240 HVRUN_LOG_LEVEL=INFO HVRUN_CACHE_CAPACITY=7");
  CHECK(has(parsed.warnings, "conf.yaml:1:13: controller sets nothing"));
  CHECK(has(parsed.warnings, "conf.yaml:4:18: params.cycle_time_ms sets nothing: there are"));
  CHECK(has(parsed.warnings, "conf.yaml:6:27: params.hierarchical_allreduce sets nothing"));
  CHECK_FALSE(has(parsed.warnings, "conf.yaml:7"));
  CHECK(has(parse_horovod({}, "controller: mpi\n").warnings, "--mpi has MPI move the data"));
}

TEST_CASE("the command line beats the file in what a no takes back, too") {
  const std::string off = "stall_check:\n  enabled: false\n";
  CHECK(parse_horovod({}, off).variables == "HVRUN_STALL_SECONDS=0");
  CHECK(parse_horovod({"--stall-check"}, off).variables == "");
  CHECK(parse_horovod({"--stall-check-warning-time-seconds", "30"}, off).variables ==
        "HVRUN_STALL_SECONDS=0 HVRUN_STALL_SECONDS=30");
  const Parsed first =
      parse_horovod({"--no-hierarchical-allreduce"}, "params:\n  hierarchical_allreduce: true\n");
  CHECK(first.warnings.find("conf.yaml") == std::string::npos);
}

TEST_CASE("a stall check that is off stays off, whatever its times") {
  CHECK(
      parse_horovod({}, "stall_check:\n  enabled: false\n  warning_time_seconds: 9\n").variables ==
      "HVRUN_STALL_SECONDS=9 HVRUN_STALL_SECONDS=0");
}

TEST_CASE("a file that is none of horovodrun's is told with the place") {
  CHECK(horovod_error({}, "params:\n  fusion_treshold_mb: 3\n") ==
        "conf.yaml:2:23: 'params.fusion_treshold_mb' is no setting of horovodrun's | did you mean "
        "params.fusion_threshold_mb?");
  CHECK(has(horovod_error({}, "- a\n- b\n"), "conf.yaml:1:1: there are no sections"));
  CHECK(has(horovod_error({}, "params: [1, 2]\n"), "conf.yaml:1:9: params has no single value"));
  CHECK(has(horovod_error({}, "params:\n  cycle_time_ms: {a: 1}\n"), "has no single value"));
  CHECK(has(horovod_error({}, "params:\n  ]\n"), "conf.yaml:2:3: this is no YAML"));
  CHECK(
      has(horovod_error({}, "autotune:\n  enabled: perhaps\n"), "'perhaps' is neither yes nor no"));
  CHECK(has(horovod_error({}, "timeline:\n  filename: \"a\\0b\"\n"), "a byte 0"));
  CHECK(has(horovod_error({}, std::string(kMostConfigBytes + 1, '#')), "more than 64 KiB"));
  CHECK(has(horovod_error({}, std::string(30000, '[')), "this is no YAML"));
  CHECK(horovod_error({}, "# nothing\n") == "no error");
}

TEST_CASE("a file that cannot be read is told with the reason") {
  CHECK_THROWS_WITH(read_horovod_config("/no/such/file"),
                    "read --config-file /no/such/file: No such file or directory");
  CHECK_THROWS_WITH(read_horovod_config("/"), "read --config-file /: Is a directory");
}
