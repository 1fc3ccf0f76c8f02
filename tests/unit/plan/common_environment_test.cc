// Tests of what ranks inherit.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/common_environment.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "src/base/error.h"
#include "src/base/name_pattern.h"

using namespace hv::launcher;

namespace {

bool has(const CommonEnvironment& environment, const std::string& entry) {
  const std::vector<std::string> entries = environment.variables.entries();
  return std::find(entries.begin(), entries.end(), entry) != entries.end();
}

const hv::Environment kOwn = hv::Environment::from_entries(
    {"PATH=/bin", "HOME=/root", "SSH_AUTH_SOCK=/x", "FOO=1", "FOO_A=2", "FOO_B=3", "HVRUN_RANK=7",
     "RANK=7", "HVRUN_FUSION_THRESHOLD=1M", "CUDA_VISIBLE_DEVICES=3", "ODD=a\nb"});

JobSpec exporting(const std::vector<std::string>& texts, bool clean = false) {
  JobSpec spec;
  spec.environment.exports = parse_exports(texts);
  spec.environment.clean_environment = clean;
  return spec;
}

}  // namespace

TEST_CASE("hvrun's environment travels, less what belongs to a host or a login") {
  const CommonEnvironment environment = common_environment(exporting({}), kOwn);
  CHECK(has(environment, "PATH=/bin"));
  CHECK(has(environment, "FOO=1"));
  CHECK(has(environment, "ODD=a\nb"));
  CHECK(has(environment, "HVRUN_FUSION_THRESHOLD=1M"));
  CHECK_FALSE(has(environment, "HOME=/root"));
  CHECK_FALSE(has(environment, "SSH_AUTH_SOCK=/x"));
  CHECK_FALSE(has(environment, "CUDA_VISIBLE_DEVICES=3"));
}

TEST_CASE(
    "what users set for GPUs, NCCL and PMIx travels, and what names a host's devices does not") {
  const hv::Environment own = hv::Environment::from_entries(
      {"NVIDIA_TF32_OVERRIDE=0", "NVIDIA_VISIBLE_DEVICES=1", "NVIDIA_REQUIRE_CUDA=12",
       "NCCL_DEBUG=INFO", "PMIX_MCA_gds=hash", "PMIX_RANK=3", "HIP_LAUNCH_BLOCKING=1",
       "HIP_VISIBLE_DEVICES=1", "ROCR_VISIBLE_DEVICES=1", "ROCR_X=1"});
  const std::vector<std::string> entries =
      common_environment(exporting({}), own).variables.entries();
  CHECK(entries == std::vector<std::string>{"HIP_LAUNCH_BLOCKING=1", "HVRUN_JOB_LOST_AFTER=15",
                                            "NCCL_DEBUG=INFO", "NVIDIA_TF32_OVERRIDE=0",
                                            "PMIX_MCA_gds=hash", "ROCR_X=1"});
}

TEST_CASE("a contract that hvrun itself was born with does not travel") {
  const CommonEnvironment environment = common_environment(exporting({}), kOwn);
  CHECK_FALSE(has(environment, "HVRUN_RANK=7"));
  CHECK_FALSE(has(environment, "RANK=7"));
}

TEST_CASE(
    "who asks hvrun to tell more is told by the ranks, too, unless they have their own time") {
  JobSpec spec = exporting({});
  CHECK_FALSE(has(common_environment(spec, kOwn), "HVRUN_STRAGGLER_SECONDS=60"));
  spec.report.verbose = true;
  CHECK(has(common_environment(spec, kOwn), "HVRUN_STRAGGLER_SECONDS=60"));
  spec.environment.exports = parse_exports({"HVRUN_STRAGGLER_SECONDS=5"});
  CHECK(has(common_environment(spec, kOwn), "HVRUN_STRAGGLER_SECONDS=5"));
  CHECK_FALSE(has(common_environment(spec, kOwn), "HVRUN_STRAGGLER_SECONDS=60"));
}

TEST_CASE("-x overrides the list, sets values and takes patterns") {
  const CommonEnvironment environment =
      common_environment(exporting({"HOME", "FOO=9", "NEW=a=b", "EMPTY="}), kOwn);
  CHECK(has(environment, "HOME=/root"));
  CHECK(has(environment, "FOO=9"));
  CHECK(has(environment, "NEW=a=b"));
  CHECK(has(environment, "EMPTY="));
}

TEST_CASE("a clean environment holds what -x names and nothing else of hvrun's") {
  const CommonEnvironment environment = common_environment(exporting({"FOO_*"}, true), kOwn);
  CHECK(environment.variables.entries() ==
        std::vector<std::string>{"FOO_A=2", "FOO_B=3", "HVRUN_JOB_LOST_AFTER=15"});
  CHECK(std::count(environment.host_variables.begin(), environment.host_variables.end(), "PATH") ==
        1);
}

TEST_CASE("-x of a missing variable, of nothing, and of the contract are errors") {
  for (const char* word : {"MISSING", "", "=x", "HVRUN_RANK=1", "MASTER_PORT=1", "RANK"}) {
    CAPTURE(word);
    CHECK_THROWS_AS(common_environment(exporting({word}), kOwn), hv::Error);
  }
}

TEST_CASE("patterns match beginnings only") {
  const hv::NamePatterns patterns({"SSH_*", "HOME"});
  CHECK(patterns.has_match("SSH_TTY"));
  CHECK_FALSE(patterns.has_match("MY_SSH_TTY"));
  CHECK(patterns.has_match("HOME"));
  CHECK_FALSE(patterns.has_match("HOMER"));
}

TEST_CASE("ranks are told --lost-after by a name that no hvrun inside them takes for its own") {
  JobSpec spec = exporting({});
  spec.ending.lost_after = std::chrono::milliseconds(2500);
  hv::Environment own = kOwn;
  own.set("HVRUN_LOST_AFTER", "9");  // the option has gone before it already
  CHECK(has(common_environment(spec, own), "HVRUN_JOB_LOST_AFTER=2.5"));
  spec.ending.lost_after = std::chrono::hours(300);
  CHECK(has(common_environment(spec, own), "HVRUN_JOB_LOST_AFTER=1080000"));
  CHECK(has(common_environment(spec, own), "HVRUN_LOST_AFTER=9"));  // the user's word, as ever
  own.set("HVRUN_JOB_LOST_AFTER", "3");                             // of a job around this one
  CHECK_FALSE(has(common_environment(spec, own), "HVRUN_JOB_LOST_AFTER=3"));
}

TEST_CASE("a knob that ranks would find malformed is refused, -x and a program's own included") {
  const auto is_refused = [](const JobSpec& spec, const hv::Environment& own) {
    try {
      check_knobs_of_ranks(common_environment(spec, own));
      return false;
    } catch (const hv::Error& error) {
      return error.kind() == hv::ErrorKind::kUsage;
    }
  };
  CHECK_FALSE(is_refused(exporting({}), kOwn));
  CHECK(is_refused(exporting({"HVRUN_FUSION_THRESHOLD=lots"}), kOwn));
  CHECK(is_refused(exporting({"HVRUN_ALGORITHM=allreduce:nosuch"}), kOwn));
  CHECK(is_refused(exporting({}), hv::Environment::from_entries({"HVRUN_BACKEND=ncl"})));
  JobSpec spec = exporting({"HVRUN_BACKEND=mpi"});
  spec.programs.push_back({{"a"}, "/"});
  spec.programs.push_back({{"b"}, "/"});
  CHECK_FALSE(is_refused(spec, kOwn));
  spec.programs.back().exports = parse_exports({"HVRUN_BACKEND=ncl"});
  CHECK(is_refused(spec, kOwn));
}

TEST_CASE("a pattern of -x that matches nothing is told, and a name that is set is not") {
  CHECK(unmatched_exports(exporting({"FOO_*", "FOO", "X=*", "HVRUN_F*"}), kOwn).empty());
  const auto unmatched = unmatched_exports(exporting({"NOPE_*"}), kOwn);
  REQUIRE(unmatched.size() == 1);
  CHECK(unmatched[0].find("-x 'NOPE_*' adds nothing") == 0);
  JobSpec spec = exporting({});
  spec.programs.push_back({{"a"}, "/"});
  spec.programs.back().exports = parse_exports({"NOPE_*"});
  CHECK(unmatched_exports(spec, kOwn).size() == 1);
}

TEST_CASE("variables of users' own that stay behind are named once, with the -x that passes them") {
  const hv::Environment own = hv::Environment::from_entries(
      {"HOME=/root", "TMPDIR=/fast", "XDG_CACHE_HOME=/c", "XDG_SESSION_ID=3", "TMP="});
  const auto warnings = variables_left_behind(exporting({}), own);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] ==
        "TMPDIR and XDG_CACHE_HOME are not passed on: ranks on other hosts have their own host's; "
        "to pass them on: -x TMPDIR -x XDG_CACHE_HOME");
  CHECK(variables_left_behind(exporting({"TMPDIR", "XDG_*"}), own).empty());
  CHECK(variables_left_behind(exporting({}, true), own).empty());
  CHECK(variables_left_behind(exporting({"TMPDIR=/x"}), own) ==
        std::vector<std::string>{"XDG_CACHE_HOME is not passed on: ranks on other hosts have their "
                                 "own host's; to pass it on: -x XDG_CACHE_HOME"});
}

TEST_CASE("directories and devices that a scheduler has set for its node are not the user's") {
  const std::vector<std::string> set{"TMPDIR=/tmp/7", "CUDA_VISIBLE_DEVICES=1",
                                     "XDG_CACHE_HOME=/c"};
  const auto warned = [&set](std::vector<std::string> entries) {
    entries.insert(entries.end(), set.begin(), set.end());
    const auto warnings =
        variables_left_behind(exporting({}), hv::Environment::from_entries(entries));
    return warnings.empty() ? "" : warnings[0].substr(0, warnings[0].find(" not passed"));
  };
  CHECK(warned({}) == "CUDA_VISIBLE_DEVICES, TMPDIR and XDG_CACHE_HOME are");
  for (const char* job : {"SLURM_JOB_ID=7", "PBS_JOBID=7", "LSB_JOBID=7", "PE_HOSTFILE=/x"})
    CHECK(warned({job}) == "XDG_CACHE_HOME is");
}

TEST_CASE("names of the contract that are set around hvrun are named, but not inside its ranks") {
  const auto warned = [](const std::vector<std::string>& entries) {
    return overridden_variables(exporting({}), hv::Environment::from_entries(entries));
  };
  CHECK(warned({"WORLD_SIZE=8", "MASTER_ADDR=n1", "MASTER_PORT=29500", "RANK="}) ==
        std::vector<std::string>{
            "WORLD_SIZE and MASTER_ADDR have no effect: hvrun itself sets them for each rank"});
  CHECK(warned({"LOCAL_RANK=0"}) ==
        std::vector<std::string>{"LOCAL_RANK has no effect: hvrun itself sets it for each rank"});
  CHECK(warned({"MASTER_PORT=29500"}).empty());
  CHECK(warned({"HVRUN_RANK=1", "RANK=1", "WORLD_SIZE=8"}).empty());
}
