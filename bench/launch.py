"""Rows of starting a job: on this machine beside mpirun, over SSH beside ssh itself. SPDX-License-Identifier: Apache-2.0"""

import json
import os
import shlex
import statistics
import sys
import time

import programs
from rounds import NotRun, Rounds, fastest, interleave

STARTS_A_ROUND = 5
VERSIONS_A_ROUND = 50
HOSTS = ("node1", "node2", "node3")
MANY = 64
STAND_IN = programs.SOURCE / "tests/c/rsh_to_here.sh"


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


def version(bench):
    """'hvrun --version': what every start of hvrun takes. subprocess itself would take a third of that."""
    words, environment = [str(bench.hvrun), "--version"], programs.environment()
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]

    def milliseconds():
        begun = time.perf_counter()
        _, status = os.waitpid(os.posix_spawn(words[0], words, environment, file_actions=silent), 0)
        if status != 0:
            raise NotRun(f"{programs.shown(words)}: status {status}")
        return 1e3 * (time.perf_counter() - begun)

    pairs = [(statistics.median(milliseconds() for _ in range(VERSIONS_A_ROUND)), None) for _ in range(bench.rounds)]
    return Rounds("ms", pairs, own_command=programs.shown(words))


def over_ssh(bench):
    """Three hosts of network namespaces, each with an sshd: 'hvrun true' on all, and three 'ssh host true' at once."""
    return beside_logins(bench, HOSTS)


def dry_run_over_ssh(bench):
    """The same on many hosts, 'hvrun --dry-run' instead. All of their probes run on this machine."""
    return beside_logins(bench, [f"node{number}" for number in range(1, MANY + 1)], "--dry-run")


def beside_logins(bench, hosts, *options):
    if os.geteuid() != 0:
        raise NotRun("making hosts takes network namespaces, which only root may create")
    words = [sys.executable, programs.SOURCE / "tests/cluster/hosts.py", "run", "--hosts", str(len(hosts)), "--",
             sys.executable, programs.SOURCE / "bench/ssh_rounds.py", "--hvrun", bench.hvrun, "--hosts", ",".join(hosts),
             "--rounds", str(bench.rounds), *(f"--option={option}" for option in options)]
    pairs = json.loads(programs.run(words, more_environment={"HVRUN_BIN_DIR": str(bench.hvrun.parent)}).splitlines()[-1])
    named = [f"ssh {name} true" for name in hosts[:3]] + (["..."] if len(hosts) > 3 else [])
    return Rounds("s", pairs, "; ".join(named) + f" ({len(hosts)} at once)",
                  programs.shown([bench.hvrun, *options, "-H", some_of(hosts), "true"]))


def dry_run_of_stand_ins(bench):
    """Many names of this machine, beside one: no login, the rest of a dry run."""
    def words(count):
        names = [f"n{number}" for number in range(1, count + 1)]
        return [bench.hvrun, "--dry-run", "--oversubscribe", "--rsh", STAND_IN, "-H"], names

    def seconds(count):
        options, names = words(count)
        return programs.seconds([*options, ",".join(f"{name}:1" for name in names), "true"])

    def shown(count):
        options, names = words(count)
        return programs.shown([*options, some_of(names), "true"])

    seconds(MANY)
    return Rounds("s", interleave(lambda: seconds(MANY), lambda: seconds(1), bench.rounds), shown(1), shown(MANY))


def some_of(hosts):
    named = [f"{name}:1" for name in hosts]
    return ",".join(named if len(named) <= len(HOSTS) else [*named[:2], "...", named[-1]])
