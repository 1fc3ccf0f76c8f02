# SPDX-License-Identifier: Apache-2.0
"""What one run does: a job and its faults, drawn from 'seed/index' and nothing else. Pure."""

import dataclasses
import json
import random

LOGIN = "login"  # the host that hvrun runs on
MOMENTS = ("connect", "setup", "started", "middle", "end")  # in this order; faults.py says which event each of them is
WITH = "with"  # the moment of a second fault that follows the first at once
KINDS = {"kill": 35, "stop": 20, "cut": 10, "flap": 15, "disk": 8, "term": 12}
# Of what a fault may hit, how often, and from which moment on it is there.
TARGETS = {
    "kill": {"hvrun": 2, "agent": 2, "guard": 2, "agent and guard": 2, "ssh": 1, "sshd": 2, "rank": 3, "child": 1},
    "stop": {"hvrun": 2, "agent": 3, "guard": 1, "ssh": 1, "sshd": 2, "rank": 3, "child": 1},
    "cut": {"link": 1}, "flap": {"link": 1}, "disk": {"disk": 1}, "term": {"hvrun": 4, "agent": 1, "guard": 1},
}
FIRST_MOMENT = {"agent": "setup", "guard": "setup", "agent and guard": "setup", "rank": "started", "child": "started"}
SHORT = 0.25  # of --lost-after: a silence that TCP's retransmissions do not stretch to a loss
LATE = 1.5  # seconds of lines before some kills of hvrun: what is older than judge.SHOWN_WITHIN has to be there
WAITING_TO_START = 6  # --start-timeout of a job that may be cut off while it starts


@dataclasses.dataclass(frozen=True)
class Fault:
    """kind hits target on host (of rank, where the target is one's) at the moment, and is undone after 'seconds' (None: never).

    The signal of 'term' comes a second time after 'seconds' (None: it does not)."""

    kind: str
    target: str
    host: str
    moment: str
    rank: int = 0  # whose lines the moments 'middle' and 'end' count; the target, or whose child the target is
    line: int = 0  # 'middle': from this line of the rank on; 'end': so many of its last lines
    after: float = 0.0  # seconds from the moment to the fault
    seconds: float = None
    signal: str = ""  # of 'term'

    def __str__(self):
        whose = f" of rank {self.rank}" if self.target == "child" else f" {self.rank}" if self.target == "rank" else ""
        what = f"{self.signal} to" if self.kind == "term" else self.kind
        when = f"{self.moment} (line {self.line} of rank {self.rank})" if self.moment in ("middle", "end") else self.moment
        length = f"{', again after' if self.kind == 'term' else ' for'} {self.seconds} s" if self.seconds is not None else ""
        return f"{what} {self.target}{whose} on {self.host}{length}, {when} + {self.after} s"


@dataclasses.dataclass(frozen=True)
class Plan:
    """A run. ranks_on: how many on node1, node2, ...; linger: seconds between the last fault and the ranks' permission to end."""

    seed: str
    index: int
    ranks_on: tuple
    program: str
    term: str
    length: int
    pace_ms: int
    lost_after: float
    grace: float
    rsh: str
    output_dir: bool
    cgroup: bool
    linger: float
    faults: tuple

    @property
    def nodes(self):
        return [f"node{number}" for number in range(1, len(self.ranks_on) + 1)]

    @property
    def size(self):
        return sum(self.ranks_on)

    def host_of(self, rank):
        return next(name for name, first in reversed(list(zip(self.nodes, self._firsts()))) if rank >= first)

    def _firsts(self):
        return [sum(self.ranks_on[:position]) for position in range(len(self.ranks_on))]

    @property
    def start_timeout(self):
        """Less than hvrun's own 30 s where a fault may leave it waiting for a host."""
        early = [fault for fault in self.faults if fault.moment in ("connect", "setup") and fault.kind in ("cut", "flap", "stop")]
        return WAITING_TO_START if any(not is_short(fault, self.lost_after) for fault in early) else 30

    def fills(self):
        return any(fault.kind == "disk" for fault in self.faults)

    def __str__(self):
        hosts = ",".join(f"{name}:{ranks}" for name, ranks in zip(self.nodes, self.ranks_on))
        program = self.program + (f" ({self.term})" if self.program == "catch" else "")
        options = f"--lost-after {self.lost_after} --grace {self.grace}{' --rsh ssh' * bool(self.rsh)}{' --output-dir' * self.output_dir}"
        return f"run {self.index}: {program} on {hosts}{' with cgroups' * self.cgroup} {options}: " + "; ".join(map(str, self.faults))

    def as_json(self):
        return json.dumps(dataclasses.asdict(self), indent=1)


def is_short(fault, lost_after):
    """It is over before anybody can have counted the silence as a loss."""
    return fault.kind in ("stop", "flap") and fault.seconds is not None and fault.seconds <= SHORT * lost_after


def draw(seed, index):
    """The plan of this run: the same for the same two values."""
    chance = random.Random(f"{seed}/{index}")
    ranks_on = draw_ranks(chance)
    program = chance.choice(("lines", "sum", "children", "catch"))
    job = {
        "ranks_on": ranks_on, "program": program, "term": chance.choice(("exit0", "exit7", "go-on")),
        "length": chance.choice((24, 200, 3000)), "pace_ms": chance.choice((5, 10, 25)),
        "lost_after": chance.choice((1.5, 2.0, 3.0)), "grace": chance.choice((0.0, 0.5, 1.0, 2.0)),
        "rsh": chance.choice(("", "", "ssh")), "output_dir": chance.random() < 0.5, "cgroup": chance.random() < 0.5,
        "linger": round(chance.uniform(0, 0.8), 3),
    }
    plan = Plan(seed=str(seed), index=index, faults=(), **job)
    faults = draw_faults(chance, plan)
    if any(fault.kind == "disk" for fault in faults):
        plan = dataclasses.replace(plan, output_dir=True, length=max(plan.length, 200))
    return dataclasses.replace(plan, faults=faults)


def draw_ranks(chance):
    """2 to 4 ranks on 1 to 3 hosts, each of which has one."""
    size = chance.randint(2, 4)
    ranks_on = [1] * chance.randint(1, min(3, size))
    for _ in range(size - len(ranks_on)):
        ranks_on[chance.randrange(len(ranks_on))] += 1
    return tuple(ranks_on)


def draw_faults(chance, plan):
    first = draw_fault(chance, plan, MOMENTS)
    if would_never_end(first, plan):
        # Nobody misses such a rank, so that the job would never end: the user ends it.
        return first, Fault("term", "hvrun", LOGIN, WITH, after=round(chance.uniform(0.1, 0.8), 3), signal="SIGTERM")
    if chance.random() < 0.6:
        return (first,)
    if chance.random() < 0.7:
        second = dataclasses.replace(draw_fault(chance, plan, MOMENTS), moment=WITH, after=round(chance.uniform(0, 0.6) ** 2, 3))
    else:
        second = draw_fault(chance, plan, MOMENTS[MOMENTS.index(first.moment):])
    return (first,) if hits_the_same(first, second) or would_never_end(second, plan) else (first, second)


def hits_the_same(first, second):
    """One of a pair of equal faults would undo the other."""
    is_of_rank = first.target in FIRST_MOMENT and FIRST_MOMENT[first.target] == "started"
    return (first.target, first.host) == (second.target, second.host) and (not is_of_rank or first.rank == second.rank)


def would_never_end(fault, plan):
    """No rank waits for the one that is stopped for good."""
    return fault.kind == "stop" and fault.target == "rank" and fault.seconds is None and plan.program != "sum"


def draw_fault(chance, plan, moments):
    kind = weighted(chance, KINDS)
    targets = {target: weight for target, weight in TARGETS[kind].items() if is_there(target, plan)}
    target = weighted(chance, targets)
    rank = chance.randrange(plan.size)
    first = MOMENTS.index(FIRST_MOMENT.get(target, "connect"))
    moment = chance.choice([each for each in moments if MOMENTS.index(each) >= first])
    host = plan.host_of(rank)
    if target in ("hvrun", "disk") or target == "link" and chance.random() < 0.25:
        host = LOGIN
    fault = Fault(kind, target, host, moment, rank=rank, after=draw_delay(chance, moment, plan.pace_ms))
    if moment == "middle":
        is_late = (kind, target) == ("kill", "hvrun") and chance.random() < 0.5
        fault = dataclasses.replace(fault, line=int(LATE * 1000 / plan.pace_ms) if is_late else chance.randint(3, 20))
    elif moment == "end":
        fault = dataclasses.replace(fault, line=chance.randint(0, 3))
    if kind == "term":
        again = round(chance.uniform(0.05, 0.5), 3) if target == "hvrun" and chance.random() < 0.3 else None
        return dataclasses.replace(fault, signal=chance.choice(("SIGTERM", "SIGINT")), seconds=again)
    return dataclasses.replace(fault, seconds=draw_length(chance, kind, target, plan))


def is_there(target, plan):
    return {"ssh": bool(plan.rsh), "child": plan.program == "children"}.get(target, True)


def draw_delay(chance, moment, pace_ms):
    """Phases of a start take some tens of milliseconds, and the last lines a few times the pace: it reaches the insides of each."""
    longest = {"connect": 0.15, "setup": 0.15, "started": 0.15, "middle": 0.0, "end": 0.003 * pace_ms}[moment]
    return round(chance.uniform(0, longest), 3)


def draw_length(chance, kind, target, plan):
    """How long a silence lasts: well below --lost-after, above it, or, for a stop, for good."""
    if kind not in ("stop", "flap"):
        return None
    short = round(chance.uniform(0.05, SHORT * plan.lost_after), 3)
    long = round(plan.lost_after + chance.uniform(0.5, 1.5), 3)
    if kind == "flap" or target == "hvrun":  # which nobody but the user lets go on
        return chance.choice((short, long))
    return chance.choice((short, long, None))


def weighted(chance, weights):
    return chance.choices(list(weights), list(weights.values()))[0]
