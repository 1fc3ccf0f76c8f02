"""Rows of starting a job: on this machine beside mpirun, over SSH beside ssh itself. SPDX-License-Identifier: Apache-2.0"""

import json
import os
import shlex
import sys

import programs
from rounds import NotRun, Rounds, fastest, interleave

STARTS_A_ROUND = 5
HOSTS = ("node1", "node2", "node3")


def local(bench):
    """'hvrun -np 2 true' and mpirun's, in mpirun's fastest configuration."""
    mpirun = programs.need_program("mpirun")
    candidates = [[mpirun, *options, "-np", "2", "true"]
                  for options in ([], ["--bind-to", "none"], ["--mca", "btl", "self,vader"],
                                  ["--bind-to", "none", "--mca", "plm", "isolated"])]
    peer = fastest(candidates, lambda words: programs.seconds(words, STARTS_A_ROUND))
    ours = [bench.hvrun, "-np", "2", "true"]
    programs.seconds(ours)
    pairs = interleave(lambda: programs.seconds(ours, STARTS_A_ROUND), lambda: programs.seconds(peer, STARTS_A_ROUND),
                       bench.rounds)
    return Rounds("s", pairs, shlex.join(peer), programs.shown(ours))


def over_ssh(bench):
    """Three hosts of network namespaces, each with an sshd: 'hvrun true' on all, and three 'ssh host true' at once."""
    if os.geteuid() != 0:
        raise NotRun("making hosts takes network namespaces, which only root may create")
    words = [sys.executable, programs.SOURCE / "tests/cluster/hosts.py", "run", "--hosts", str(len(HOSTS)), "--",
             sys.executable, programs.SOURCE / "bench/ssh_rounds.py", "--hvrun", bench.hvrun, "--hosts", ",".join(HOSTS),
             "--rounds", str(bench.rounds)]
    pairs = json.loads(programs.run(words, more_environment={"HVRUN_BIN_DIR": str(bench.hvrun.parent)}).splitlines()[-1])
    return Rounds("s", pairs, "; ".join(f"ssh {name} true" for name in HOSTS) + " (at once)",
                  programs.shown([bench.hvrun, "-H", ",".join(name + ":1" for name in HOSTS), "true"]))
