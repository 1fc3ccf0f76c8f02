// The text is Slurm 22.05's, shortened; the section on cgroups is as of 23.11.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/slurm_settings.h"

#include <doctest/doctest.h>

using namespace hv::launcher;
using namespace std::chrono_literals;

namespace {

std::string config(const std::string& proctrack, const std::string& signals_children) {
  return "Configuration data as of 2026-11-28T06:38:09\n"
         "KillOnBadExit           = 0\n"
         "KillWait                = 30 sec\n"
         "LaunchParameters        = (null)\n"
         "ProctrackType           = " +
         proctrack +
         "\nSlurmctldParameters     = idle_on_node_suspend,ProctrackType=x\n"
         "UnkillableStepTimeout   = 60 sec\n\n"
         "Cgroup Support Configuration:\n"
         "CgroupMountpoint        = /sys/fs/cgroup\n"
         "SignalChildrenProcesses = " +
         signals_children + "\n\nSlurmctld(primary) at login is UP\n";
}

bool signals_ranks(const std::string& text) {
  const auto settings = parse_slurm_settings(text);
  REQUIRE(settings);
  return signals_every_process(*settings);
}

std::optional<std::chrono::seconds> kill_wait(const std::string& value) {
  const auto settings = parse_slurm_settings("ProctrackType=cgroup\nKillWait = " + value + "\n");
  REQUIRE(settings);
  return settings->kill_wait;
}

}  // namespace

TEST_CASE("slurm_settings takes three values from scontrol's text") {
  CHECK(parse_slurm_settings(config("proctrack/linuxproc", "no")) ==
        SlurmSettings{"linuxproc", false, 30s});
  CHECK(parse_slurm_settings(config("proctrack/cgroup", "yes")) ==
        SlurmSettings{"cgroup", true, 30s});
  CHECK(parse_slurm_settings("PROCTRACKTYPE=Proctrack/PGID\r\n") ==
        SlurmSettings{"pgid", false, std::nullopt});
}

TEST_CASE("slurm_settings says whether jobs are preempted") {
  const auto preempts = [](const std::string& line) {
    return parse_slurm_settings("ProctrackType=cgroup\n" + line + "\n")->preempts;
  };
  CHECK(preempts("PreemptType             = preempt/partition_prio"));
  CHECK(preempts("PreemptType             = preempt/qos"));
  CHECK_FALSE(preempts("PreemptType             = preempt/none"));
  CHECK_FALSE(preempts("PreemptType             = (null)"));
  CHECK_FALSE(preempts(""));
}

TEST_CASE("a partition's GraceTime counts where it is longer than KillWait") {
  const std::string partition = "PartitionName=idle AllowGroups=ALL Nodes=n1 GraceTime=";
  CHECK(parse_grace_time(partition + "120 Hidden=NO") == 120s);
  CHECK(parse_grace_time(partition + "0\n") == 0s);
  for (const std::string& other : {partition + "-1", partition + "x", std::string("OldGraceTime=3"),
                                   std::string(), std::string(kMostSlurmConfigBytes + 1, ' ')})
    CHECK_FALSE(parse_grace_time(other));
  const SlurmSettings known{"cgroup", false, 30s}, unknown{"cgroup", false, std::nullopt};
  CHECK(time_to_end(known, 120s) == 120s);
  CHECK(time_to_end(known, 0s) == 30s);
  CHECK(time_to_end(known, std::nullopt) == 30s);
  CHECK(time_to_end(unknown, 120s) == 120s);
  CHECK_FALSE(time_to_end(unknown, std::nullopt));
}

TEST_CASE("slurm_settings knows which plugins signal every process of a step") {
  CHECK(signals_ranks(config("proctrack/linuxproc", "no")));
  CHECK(signals_ranks(config("linuxproc", "no")));
  for (const char* yes : {"yes", "YES", "true", "1", "up"})
    CHECK(signals_ranks(config("proctrack/cgroup", yes)));
  for (const char* no : {"no", "", "0", "(null)"})
    CHECK_FALSE(signals_ranks(config("proctrack/cgroup", no)));
  CHECK_FALSE(signals_ranks(config("proctrack/pgid", "yes")));
  CHECK_FALSE(signals_ranks(config("proctrack/other", "yes")));
}

TEST_CASE("slurm_settings counts a SignalChildrenProcesses that is not printed as no") {
  CHECK_FALSE(signals_ranks("ProctrackType = proctrack/cgroup\nKillWait = 30 sec\n"));
}

TEST_CASE("slurm_settings is unknown without a ProctrackType that Slurm can have") {
  CHECK_FALSE(parse_slurm_settings(""));
  CHECK_FALSE(parse_slurm_settings("KillWait = 30 sec\nSignalChildrenProcesses = yes\n"));
  CHECK_FALSE(parse_slurm_settings("ProctrackType\nOldProctrackType = proctrack/linuxproc\n"));
  for (const char* wrong : {"", "(null)", "proctrack/", "a b", "proctrack/\x1b[31m", "\xff"})
    CHECK_FALSE(parse_slurm_settings(config(wrong, "yes")));
  CHECK(parse_slurm_settings("ProctrackType=" + std::string(64, 'x')));
  CHECK_FALSE(parse_slurm_settings("ProctrackType=" + std::string(65, 'x')));
  CHECK_FALSE(parse_slurm_settings(config("proctrack/cgroup", "no") +
                                   std::string(kMostSlurmConfigBytes, '\n')));
}

TEST_CASE("slurm_settings takes a KillWait in seconds that Slurm can have") {
  CHECK(kill_wait("30 sec") == 30s);
  CHECK(kill_wait("5") == 5s);
  CHECK(kill_wait("0 sec") == 0s);
  CHECK(kill_wait("65535 sec") == 65535s);
  for (const char* wrong : {"", "sec", "-1 sec", "65536 sec", "99999999999999999999 sec", "3.5 sec",
                            "3 min", "3sec", "(null)"})
    CHECK_FALSE(kill_wait(wrong));
}
