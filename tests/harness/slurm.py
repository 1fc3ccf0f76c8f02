# SPDX-License-Identifier: Apache-2.0
"""Slurm on a cluster's hosts: slurmctld on the login host, slurmd on the others, munge on all, each a real one.

    with Slurm(cluster) as slurm:
        slurm.batch("hvrun hostname", "-N", "3").wait(30)

Jobs run in the folder that all hosts share; their output lies there.
"""

import itertools
import pathlib
import shutil
import subprocess

from harness.cgroup import Hierarchy
from harness.cluster import PREFIX
from harness.syscalls import MS_NODEV, MS_NOSUID, mount
from harness.waiting import wait_for

TOOLS = ("slurmctld", "slurmd", "sbatch", "srun", "munged")
KEY = b"one key for all hosts of a test, 32 bytes or more"
MUNGE = "/run/munge"
STATE = "/run/slurm"
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={login}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
ProctrackType=proctrack/{proctrack}
TaskPlugin=task/affinity
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
MpiDefault=none
ReturnToService=2
SlurmdTimeout=10
KillWait={kill_wait}
UnkillableStepTimeout=10
StateSaveLocation={state}/state
SlurmdSpoolDir={state}/spool
SlurmctldPidFile={state}/slurmctld.pid
SlurmdPidFile={state}/slurmd.pid
SlurmctldLogFile={state}/slurmctld.log
SlurmdLogFile={state}/slurmd.log
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=10 State=UP OverSubscribe=FORCE:4
"""

# Every other state passes: PENDING, RUNNING, COMPLETING, also SIGNALING while a signal is on its way.
OVER = ("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT")


def why_not(proctrack="pgid"):
    """Why there can be no Slurm here, or None."""
    missing = [tool for tool in TOOLS if not (shutil.which(tool) or pathlib.Path(f"/usr/sbin/{tool}").exists())]
    if missing:
        return f"Slurm takes {', '.join(missing)}"
    return Hierarchy.why_no_freezer() if proctrack == "cgroup" else None


def topology():
    """This machine's processors in slurm.conf's words: task/affinity binds to what there really is."""
    words = subprocess.run(["slurmd", "-C"], capture_output=True, text=True, check=True).stdout.split("\n")[0].split()
    wanted = ("CPUs", "Boards", "SocketsPerBoard", "CoresPerSocket", "ThreadsPerCore")
    return " ".join(word for word in words if word.split("=")[0] in wanted)


class BatchJob:
    """A job of sbatch: one output file for both streams."""

    def __init__(self, slurm, number, output):
        self.slurm, self.number, self._output = slurm, number, output

    @property
    def output(self):
        return self._output.read_text() if self._output.exists() else ""

    @property
    def state(self):
        """'RUNNING', 'COMPLETED', ...; and its exit code, 'code:signal'."""
        words = self.slurm.cluster.run(["scontrol", "-o", "show", "job", str(self.number)]).out.split()
        fields = dict(word.split("=", 1) for word in words if "=" in word)
        return fields.get("JobState", "?"), fields.get("ExitCode", "?")

    def is_over(self):
        return self.state[0] in OVER

    def wait(self, timeout):
        """Until it is over; returns (state, exit code, output)."""
        wait_for(self.is_over, timeout, lambda: f"the end of job {self.number}: {self.state}\n{self.output}\n{self.slurm.logs()}")
        return (*self.state, self.output)

    def end_in(self, seconds):
        """Its time limit will be then. Slurm looks at the limits every 30 s, and sends the signal of --signal up to 30 s early."""
        result = self.slurm.cluster.run(["scontrol", "update", f"JobId={self.number}", f"EndTime=now+{seconds}"])
        assert result.code == 0, result

    def wait_for_output(self, text, timeout):
        wait_for(lambda: text in self.output, timeout,
                 lambda: f"{text!r} from job {self.number}: {self.state}\n{self.output}\n{self.slurm.logs()}")


class Slurm:
    """more: further lines of slurm.conf; of_nodes: further words of its nodes; gres: the lines of gres.conf; proctrack: pgid and cgroup
    signal a step's tasks alone, linuxproc every process."""

    def __init__(self, cluster, more="", of_nodes="", gres="", proctrack="pgid", kill_wait=5):
        self.cluster = cluster
        self._more, self._of_nodes, self._gres = more, of_nodes, gres
        self._settings = {"proctrack": proctrack, "kill_wait": kill_wait}
        self.daemons = {}
        self._freezers = []
        self._numbers = itertools.count()

    def __enter__(self):
        hosts = [self.cluster.login, *self.cluster.nodes]
        for host in hosts:
            self._configure(host)
        daemons = [(host, "munged", ["--foreground", f"--key-file={MUNGE}/key", f"--socket={MUNGE}/munge.socket.2",
                                     f"--pid-file={MUNGE}/pid", f"--log-file={MUNGE}/log", f"--seed-file={MUNGE}/seed"])
                   for host in hosts]
        daemons += [(self.cluster.login, "slurmctld", ["-D"])]
        daemons += [(node, "slurmd", ["-D", "-N", node.name]) for node in self.cluster.nodes]
        try:
            self._start(daemons)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for daemon in self.daemons.values():
            daemon.__exit__()
        for freezer in self._freezers:
            freezer.remove_stale(self.cluster.folder.name, lambda _: True)

    def _start(self, daemons):
        for host, program, options in daemons:
            self.daemons[host.name, program] = host.start([f"/usr/sbin/{program}", *options], clean_path=True)
            if program == "munged":
                wait_for(lambda: host.outside(f"{MUNGE}/munge.socket.2").exists(), 10, lambda: f"munged on {host.name}: {self.logs()}")
        wait_for(self._is_idle, 30, lambda: f"Slurm's nodes: {self.cluster.run(['sinfo', '-N', '-l'])}\n{self.logs()}")

    def _configure(self, host):
        words = f"{topology()} {self._of_nodes} State=UNKNOWN"
        nodes = "\n".join(f"NodeName={node.name} NodeAddr={node.address} {words}" for node in self.cluster.nodes)
        text = CONFIGURATION.format(login=f"{self.cluster.login.name}({self.cluster.login.address})", state=STATE, nodes=nodes,
                                    **self._settings)
        host.call(lambda: mount("tmpfs", "/etc/slurm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755"))
        host.write_file("/etc/slurm/slurm.conf", text + self._more)
        host.write_file("/etc/slurm/gres.conf", self._gres)
        host.write_file("/etc/slurm/cgroup.conf", f"CgroupPlugin=cgroup/v1\nCgroupMountpoint={STATE}/cgroup\n")
        host.write_file(f"{MUNGE}/key", KEY, mode=0o400)
        host.shell(f"mkdir -p {STATE}/state {STATE}/spool {STATE}/cgroup")
        # slurmd wants some file system there, although but for proctrack/cgroup nothing uses it.
        host.call(lambda: mount("tmpfs", f"{STATE}/cgroup", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755"))
        if self._settings["proctrack"] == "cgroup":
            clusters = self.cluster.folder.parent
            freezer = Hierarchy.freezer_of(host, f"{STATE}/cgroup", f"{self.cluster.folder.name}/{host.name}")
            freezer.remove_stale(PREFIX, lambda name: not (clusters / name).exists())
            self._freezers.append(freezer)

    def _is_idle(self):
        states = set(self.cluster.run(["sinfo", "-h", "-N", "-o", "%N %T"]).out.splitlines())  # a line for each partition
        return states == {f"{node.name} idle" for node in self.cluster.nodes}

    def logs(self):
        return "\n".join(f"-- {program} on {name}\n{daemon.err[-1500:]}{daemon.out[-500:]}"
                         for (name, program), daemon in self.daemons.items())

    def batch(self, script, *options, user="root", env=None):
        """A BatchJob of these lines of sh; options are sbatch's."""
        path = self.cluster.shared / f"job{next(self._numbers)}.sh"
        path.write_text(f"#!/bin/sh\n{script}\n")
        return self.submit(path, *options, user=user, env=env)

    def submit(self, path, *options, user="root", env=None):
        """A BatchJob of a script that is there."""
        folder = self.cluster.shared
        output = folder / f"{path.stem}.out"
        result = self.cluster.run(["sbatch", "--parsable", "-o", str(output), *options, str(path)], user=user, env=env, cwd=str(folder))
        assert result.code == 0, f"{result}\n{self.logs()}"
        return BatchJob(self, int(result.out.split(";")[0]), output)
