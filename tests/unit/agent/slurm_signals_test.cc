// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/slurm_signals.h"

#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "tests/unit/temporary_folder.h"

using namespace hv;
using namespace hv::launcher;
using namespace hv::tests;

TEST_CASE("slurm_signals knows the one plugin that signals each process itself") {
  CHECK(signals_every_process("ProctrackType=proctrack/linuxproc\n"));
  CHECK(signals_every_process("A=1\n  PROCTRACKTYPE = Proctrack/LinuxProc  # here\nB=2"));
  CHECK(signals_every_process("proctracktype=linuxproc"));
  CHECK_FALSE(signals_every_process("ProctrackType=proctrack/cgroup\n"));
  CHECK_FALSE(signals_every_process("ProctrackType=proctrack/pgid\n"));
  CHECK_FALSE(signals_every_process("#ProctrackType=proctrack/linuxproc\n"));
  CHECK_FALSE(signals_every_process("ProctrackType\n=\nOldProctrackType=proctrack/linuxproc"));
  CHECK_FALSE(signals_every_process(""));
}

TEST_CASE("slurm_signals reads the named slurm.conf, inside a job only") {
  const TemporaryFolder folder;
  const std::string file = folder / "slurm.conf";
  std::ofstream(file) << "ClusterName=x\nProctrackType=proctrack/linuxproc\n";
  const auto told = [](std::initializer_list<std::string> entries) {
    return slurm_signals_every_process(Environment::from_entries(entries));
  };
  CHECK(told({"SLURM_JOB_ID=1", "SLURM_CONF=" + file}));
  CHECK_FALSE(told({"SLURM_CONF=" + file}));
  CHECK_FALSE(told({"SLURM_JOB_ID=1", "SLURM_CONF=" + file + ".not"}));
}
