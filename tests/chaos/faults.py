# SPDX-License-Identifier: Apache-2.0
"""How a fault is done: which processes it hits, by which event its moment is known, and how it is undone."""

import os
import signal

from chaos.plan import LOGIN, WITH
from harness import filesystem, processes
from harness.waiting import wait_for

LOGS = "/run/logs"  # of the login host: --output-dir of a run whose disk fills up, on a file system of its own
RANK = "chaos_rank"
LINES_BEFORE_END = 3  # of each rank
ANSWERED, RUN = "agents answer", "ranks run"  # hvrun -v says so


def on_hosts(cluster):
    """{host: its processes}, by one look at /proc."""
    namespaces = {host.namespace: name for name, host in cluster.hosts.items()}
    found = {name: [] for name in cluster.hosts}
    for entry in os.listdir("/proc"):
        name = namespaces.get(processes.pid_namespace(int(entry))) if entry.isdigit() else None
        if name and (process := processes.look_at(int(entry))) and process.state not in processes.ZOMBIE_STATES:
            found[name].append(process)
    return found


def newcomers(cluster):
    """{host: every process but PID 1 and the listening sshd}: what a job has there."""
    found = on_hosts(cluster)
    listeners = {name: listener_of(host) for name, host in cluster.hosts.items()}
    return {name: [each for each in there if each.pid != cluster[name].pid and each.host_pid != listeners[name]]
            for name, there in found.items()}


def listener_of(host):
    try:
        return int(host.outside("/run/sshd.pid").read_text())
    except (OSError, ValueError):
        return None


def targets_of(fault, job):
    """The living processes that the fault is to hit, [] while they are not there."""
    if fault.target == "hvrun":
        return [each for each in [processes.look_at(job.running.pid)] if each and each.runs]
    there = sorted(newcomers(job.cluster)[LOGIN if fault.target == "ssh" else fault.host], key=lambda each: each.pid)
    agents, guards = ([each for each in there if each.name == name][:1] for name in ("hvrun-agent", "hvrun-guard"))
    if fault.target == "agent and guard":
        return agents + guards if agents and guards else []
    if fault.target in ("agent", "guard"):
        return agents if fault.target == "agent" else guards
    if fault.target == "ssh":
        return [each for each in there if each.name == "ssh" and fault.host in each.arguments][:1]
    if fault.target == "sshd":
        sessions = [each for each in there if each.name.startswith("sshd")]
        return [sessions[fault.rank % len(sessions)]] if sessions else []
    alike = [each for each in there if each.name == RANK and each.environment.get("HVRUN_RANK") == str(fault.rank)]
    ranks = [each for each in alike if each.parent not in [other.pid for other in alike]]
    return ranks[:1] if fault.target == "rank" else [each for each in alike if each not in ranks][:1]


def has_come(fault, job):
    """Whether the fault's moment is there: an event that has been seen."""
    if fault.moment == WITH:
        return True  # faults are done in order
    if fault.moment == "connect":
        return bool(job.connections_to(fault.host if fault.host != LOGIN else job.plan.nodes[0]))
    if fault.moment in ("setup", "started"):
        return (ANSWERED if fault.moment == "setup" else RUN) in job.err
    if fault.moment == "middle":
        return job.lines_of(fault.rank) >= fault.line
    if all(job.lines_of(rank) >= LINES_BEFORE_END for rank in range(job.plan.size)):
        job.let_ranks_end()
    return job.lines_at_finish is not None and job.lines_of(fault.rank) >= job.lines_at_finish[fault.rank] + fault.line


def inject(fault, job):
    """Does it. Returns the processes that it hit, [] where it hits none, or None while what it is to hit is not there."""
    if fault.kind in ("cut", "flap"):
        job.cluster[fault.host].link_down()
        return []
    if fault.kind == "disk":
        filesystem.full(str(job.cluster.login.outside(LOGS)))
        return []
    hit = targets_of(fault, job)
    if not hit:
        return None
    if fault.kind == "kill":
        processes.kill_together(hit)
    elif fault.kind == "stop":
        for each in hit:
            each.kill(signal.SIGSTOP)
            wait_for(lambda each=each: (now := processes.look_at(each.pid)) is None or now.state in "TZX", 30, f"{each} stops")
    else:
        for each in hit:
            each.kill(getattr(signal, fault.signal))
    return hit


def undo(fault, hit, job):
    """A stopped process goes on, a link comes up again; a signal comes again."""
    if fault.kind in ("cut", "flap"):
        job.cluster[fault.host].link_up()
    for each in hit:
        if each.runs and fault.kind in ("stop", "term"):
            each.kill(signal.SIGCONT if fault.kind == "stop" else getattr(signal, fault.signal))
