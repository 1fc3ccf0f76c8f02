// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/slurm_signals.h"

#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <string>

#include "tests/unit/temporary_folder.h"

using namespace hv;
using namespace hv::launcher;
using namespace hv::tests;

namespace {

bool told_by(const std::map<std::string, std::string>& files) {
  return signals_every_process("/s/slurm.conf", [&](const std::string& path) {
    const auto found = files.find(path);
    return found == files.end() ? std::nullopt : std::optional(found->second);
  });
}

bool told_by(const std::string& slurm_conf) { return told_by({{"/s/slurm.conf", slurm_conf}}); }

}  // namespace

TEST_CASE("slurm_signals knows the one plugin that signals each process itself") {
  CHECK(told_by("ProctrackType=proctrack/linuxproc\n"));
  CHECK(told_by("A=1\n  PROCTRACKTYPE = Proctrack/LinuxProc  # here\nB=2"));
  CHECK(told_by("proctracktype=\"linuxproc\"\r\n"));
  CHECK(told_by("A=1 ProctrackType=linuxproc B=2"));
  CHECK(told_by("ProctrackType=proctrack/cgroup\nProctrackType=proctrack/linuxproc\n"));
  CHECK_FALSE(told_by("ProctrackType=proctrack/cgroup\n"));
  CHECK_FALSE(told_by("ProctrackType=proctrack/pgid\n"));
  CHECK_FALSE(told_by("#ProctrackType=proctrack/linuxproc\n"));
  CHECK_FALSE(told_by("A=\"ProctrackType=linuxproc\""));
  CHECK_FALSE(told_by("ProctrackType\n=\nOldProctrackType=proctrack/linuxproc"));
  CHECK_FALSE(told_by(""));
  CHECK_FALSE(told_by(std::map<std::string, std::string>()));
}

TEST_CASE("slurm_signals reads what slurm.conf includes, and from no circle for ever") {
  const std::string wanted = "ProctrackType=linuxproc\n";
  CHECK(told_by({{"/s/slurm.conf", "Include more.conf\n"}, {"/s/more.conf", wanted}}));
  CHECK(told_by(
      {{"/s/slurm.conf", "A=1\ninclude\t/o/More.conf # x\nB=2"}, {"/o/More.conf", wanted}}));
  CHECK(told_by({{"/s/slurm.conf", "Include a"}, {"/s/a", "include b"}, {"/s/b", wanted}}));
  CHECK_FALSE(told_by({{"/s/slurm.conf", "#Include a\nInclude\nInclude none"}, {"/s/a", wanted}}));
  CHECK_FALSE(told_by({{"/s/slurm.conf", "Include slurm.conf\nInclude slurm.conf"}}));
}

TEST_CASE("slurm_signals knows the cgroup plugin that was told to signal each process") {
  const auto told = [](const std::string& slurm_conf, const std::string& value) {
    return told_by(
        {{"/s/slurm.conf", slurm_conf},
         {"/s/cgroup.conf", "CgroupPlugin=autodetect\nSignalChildrenProcesses=" + value}});
  };
  for (const char* yes : {"yes", "YES", "true", "1", "up"}) CHECK(told("", yes));
  CHECK(told("ProctrackType=proctrack/cgroup", "yes"));
  CHECK_FALSE(told("ProctrackType=proctrack/pgid", "yes"));
  for (const char* no : {"no", "", "0", "#yes"}) CHECK_FALSE(told("", no));
}

TEST_CASE("slurm_signals reads the named slurm.conf, inside a step only") {
  const TemporaryFolder folder;
  const std::string file = folder / "slurm.conf";
  std::ofstream(file) << "ClusterName=x\nProctrackType=proctrack/linuxproc\n";
  const auto told = [](std::initializer_list<std::string> entries) {
    return slurm_signals_every_process(Environment::from_entries(entries));
  };
  CHECK(told({"SLURM_STEP_ID=0", "SLURM_CONF=" + file}));
  CHECK_FALSE(told({"SLURM_CONF=" + file}));
  CHECK_FALSE(told({"SLURM_JOB_ID=1", "SLURM_CONF=" + file}));
  CHECK_FALSE(told({"SLURM_STEP_ID=0", "SLURM_CONF=" + file + ".not"}));
}
