# SPDX-License-Identifier: Apache-2.0
"""What must hold after a run, whatever its faults were. Pure: from what was seen to a list of violations."""

import dataclasses
import re

from chaos.plan import LOGIN, is_short

START, TIMEOUT, LOST, USAGE = 3, 4, 5, 2  # hvrun's exit codes
NUMBERS = {"SIGINT": 2, "SIGTERM": 15}
KILLED = 137
VANISH = 5.0  # seconds after hvrun's end, and after --lost-after where something was silent: docs/architecture.md, Failure
ROOM = 20.0  # beyond every limit, for a machine that does much else
SHOWN_WITHIN = 1.0  # seconds from a rank's write to hvrun's: docs/output.md
STALLED = 0.3  # of --lost-after: a machine that stood still for so long may have made a silence of its own
HEAD = 18  # bytes of 'RRRR NNNNNNNNNNNN '
REPORTS = re.compile(r"AddressSanitizer|ThreadSanitizer|LeakSanitizer|MemorySanitizer|runtime error: |HV_CHECK|internal error at|"
                     r"Assertion `|terminate called|\*\*\* stack smashing|buffer overflow detected|corrupted|double free|wrong sum")
BY_TIME = re.compile(r"it was silent for|no answer within|within --start-timeout|gave no sign of life|did not answer|--start-timeout")
NODES = re.compile(r"\b([a-z]+)(\d+|\[[\d,-]+\])")  # "node1", "node[1-2]", as hvrun names hosts
SWEPT_IN_VAIN = re.compile(r"may still run on hosts? (.+?): |on host (\S+).* may remain")
SILENT_TARGETS = ("agent", "ssh", "sshd", "hvrun", "link")  # a stop or cut of these is a silence to the other end


@dataclasses.dataclass(frozen=True)
class Done:
    """A fault that was done. hit: (pid, start) of processes; ran: hvrun had said by then that all ranks run; written: of each rank
    how many lines it had written SHOWN_WITHIN before."""

    fault: object
    hit: tuple = ()
    ran: bool = False
    written: tuple = ()


@dataclasses.dataclass(frozen=True)
class Rest:
    """A process on a host after hvrun's end."""

    host: str
    pid: int
    start: int
    parent: int
    name: str
    has_job: bool  # HVRUN_JOB_ID is in its environment
    text: str


@dataclasses.dataclass
class Seen:
    """All that was seen of a run. code: as Popen has it, negative for a signal; took: seconds from the last fault, or the ranks'
    permission to end, to hvrun's end; vanished_after: seconds after that, None: something was left; missed: faults not done."""

    in_time: bool = True
    took: float = 0.0
    code: int = 0
    out: bytes = b""
    err: str = ""
    summary: dict = None
    journals: dict = dataclasses.field(default_factory=dict)  # {rank: text}, see chaos_rank.c
    files: dict = dataclasses.field(default_factory=dict)  # {rank: bytes of its stdout below --output-dir}
    done: list = dataclasses.field(default_factory=list)
    missed: int = 0
    left: list = dataclasses.field(default_factory=list)  # Rest
    left_after_all: list = dataclasses.field(default_factory=list)
    vanished_after: float = None
    new_files: list = dataclasses.field(default_factory=list)
    sockets: list = dataclasses.field(default_factory=list)
    cores: list = dataclasses.field(default_factory=list)
    stall: float = 0.0


@dataclasses.dataclass(frozen=True)
class Violation:
    kind: str
    text: str


def judge(plan, seen):
    """(violations, whether they prove nothing because this machine stood still)."""
    found = [*judge_end(plan, seen), *judge_rest(seen), *judge_output(plan, seen), *judge_reports(seen)]
    is_stalled = seen.stall > STALLED * plan.lost_after and bool(BY_TIME.search(seen.err))
    return found, bool(found) and is_stalled and all(each.kind in ("cause", "output") for each in found)


# ---- times


def time_to_end(plan, has_run):
    """Seconds from the last fault within which hvrun ends by its own limits: to notice, to collect, to sweep, to probe, to end."""
    start = 0 if has_run else 2 * plan.start_timeout + 4
    return start + plan.lost_after + 5 + 3 + 2 + plan.grace + 3 + 3.5 + ROOM


def is_silent(done):
    return done.fault.kind in ("cut", "flap") or done.fault.kind == "stop" and done.fault.target in SILENT_TARGETS


def time_to_vanish(plan, done):
    return VANISH + ROOM + (plan.lost_after if any(map(is_silent, done)) else 0)


def is_late(plan, seen):
    """hvrun or its job has ended after the promised time, yet within the room for a busy machine."""
    vanished_late = seen.vanished_after is not None and seen.vanished_after > time_to_vanish(plan, seen.done) - ROOM
    return vanished_late or seen.took > time_to_end(plan, "ranks run" in seen.err) - ROOM


# ---- the end


def judge_end(plan, seen):
    if not seen.in_time:
        yield Violation("hang", f"hvrun had not ended {time_to_end(plan, 'ranks run' in seen.err):g} s after the last fault")
        return
    if seen.code < 0:
        yield from judge_killed(seen)
        return
    if seen.summary is None:
        if not fits_full_disk(seen):
            yield Violation("code", f"exit code {seen.code} without a summary")
        return
    state = seen.summary["state"]
    if seen.summary["exit_code"] != seen.code and not fits_full_disk(seen):
        yield Violation("code", f"exit code {seen.code}, and {seen.summary['exit_code']} in the summary")
    if (state == "ok") != (seen.code == 0) and not fits_full_disk(seen):
        yield Violation("code", f"exit code {seen.code} of a job that ended as {state}")
    if state == "not_started" and "ranks run" in seen.err:
        yield Violation("code", "not_started, though all ranks ran")
    if seen.code == 0:
        yield from judge_success(plan, seen)
    elif not any(fits(done, plan, seen) for done in seen.done):
        harmless = all(is_harmless(done, plan) for done in seen.done)
        what = "nothing that could end a job was done" if harmless else "it fits none of the faults"
        yield Violation("cause", f"exit code {seen.code}, {state}, cause {named(seen)}: {what}")


def judge_killed(seen):
    if not any(done.fault.kind == "kill" and done.fault.target == "hvrun" for done in seen.done):
        yield Violation("code", f"hvrun was ended by signal {-seen.code}, which nobody sent")


def judge_success(plan, seen):
    for rank in range(plan.size):
        journal = seen.journals.get(rank, "")
        if not journal.endswith("d"):
            yield Violation("code", f"exit code 0, and rank {rank} did not end well: {journal[-20:]!r}")
    if seen.summary["lost_output_bytes"]:
        yield Violation("code", f"exit code 0, and {seen.summary['lost_output_bytes']} bytes of output were lost")
    wrong = [each for each in seen.summary["ranks"] if each["exit_code"] != 0]
    if wrong:
        yield Violation("code", f"exit code 0, and the summary says of ranks: {wrong}")


def named(seen):
    cause = seen.summary.get("cause") or {}
    return {name: cause.get(name) for name in ("rank", "host", "reason") if cause.get(name) is not None}


def is_harmless(done, plan):
    """Nobody may end the job for it."""
    fault = done.fault
    if fault.target == "child" or fault.kind == "stop" and fault.target == "guard":
        return True
    if fault.kind == "stop" and fault.target == "rank" and plan.program != "sum":
        return True
    if fault.kind == "stop" and fault.target == "sshd" and not done.ran:
        return False  # sshd drops a login in which one of its processes was stopped
    return is_short(fault, plan.lost_after)


def fits(done, plan, seen):
    """Whether this end of the job, which is no success, is what the fault may lead to."""
    fault, state = done.fault, seen.summary["state"]
    if is_harmless(done, plan):
        return False
    if fault.kind == "disk":
        return fits_full_disk(seen)
    if fault.target == "hvrun" and fault.kind == "term":
        number = NUMBERS[fault.signal]
        return state == "interrupted" and seen.code == 128 + number and f"hvrun: ended by {fault.signal}" in seen.err
    if fault.target == "rank":
        return fits_rank(fault, seen)
    hosts = plan.nodes if fault.host == LOGIN else [fault.host]
    if state == "not_started":
        return seen.code in (START, TIMEOUT, LOST) and any(names_in_error(host, seen) for host in hosts)
    return any(fits_host(host, seen) for host in hosts)


def fits_full_disk(seen):
    filled = any(done.fault.kind == "disk" for done in seen.done)
    return filled and seen.code in (USAGE, START) and "No space left on device" in seen.err


def fits_rank(fault, seen):
    cause = seen.summary.get("cause") or {}
    if seen.summary["state"] != "rank_failed" or cause.get("rank") != fault.rank:
        return False
    is_named = f"hvrun: error: rank {fault.rank} on host {fault.host} " in seen.err
    if fault.kind == "kill":
        return is_named and seen.code == KILLED and "SIGKILL" in seen.err
    # By the ranks that waited for it; one that went on has ended by then, for they had left.
    return is_named and (cause["loss_reason"] is not None or fault.seconds is not None)


def fits_host(host, seen):
    cause = seen.summary.get("cause") or {}
    return (seen.summary["state"] == "host_lost" and seen.code == LOST and cause.get("host") == host
            and bool(re.search(rf"hvrun: error: (the job was ended on )?host {host} with ", seen.err)))


def names_in_error(host, seen):
    errors = [line for line in seen.err.splitlines() if line.startswith("hvrun: error: ")]
    return any(host in hosts_in(line) or re.search(rf"\b{host}\b", line) for line in errors)


# ---- what is left


def silent_hosts(plan, done):
    """Hosts whose connection may stand without anybody's being able to end it."""
    names = set()
    for each in done:
        if is_silent(each):
            names |= {*plan.nodes, LOGIN} if each.fault.host == LOGIN else {each.fault.host}
    return names


def leftovers(plan, seen, rest):
    """Those that must not be there any more. docs/testing.md lists what is excused."""
    stopped = {pid for done in seen.done if done.fault.kind == "stop" for pid in done.hit}
    pids = {pid for pid, _ in stopped}
    kept = {each.parent for each in rest if (each.pid, each.start) in stopped}  # a guard waits for its agent
    silent = silent_hosts(plan, seen.done)
    left = []
    for each in rest:
        is_kept = (each.pid, each.start) in stopped or each.pid in kept or each.parent in pids and each.name == "hvrun-agent"
        is_excused = is_held_up(each, seen) or is_across_silence(each, silent, seen) or is_unwatched(each.host, seen)
        if not is_kept and not is_excused:
            left.append(each)
    return left


def is_held_up(each, seen):
    """A rank whose agent stands still: nothing looks after it without hvrun, or where hvrun could not reach that host."""
    stopped = {done.fault.host for done in seen.done if done.fault.kind == "stop" and done.fault.target == "agent"}
    is_hvrun_gone = any(done.fault.kind == "kill" and done.fault.target == "hvrun" for done in seen.done)
    return each.has_job and each.host in stopped and (is_hvrun_gone or each.host in unswept_hosts(seen))


def is_across_silence(each, silent, seen):
    """Sessions of sshd wait for TCP; the shell that installs an agent knows no --lost-after, the agent does."""
    if each.host not in silent or each.has_job:
        return False
    is_installing = not ran_before_silence(seen) and each.name not in ("hvrun-agent", "hvrun-guard")
    return each.name.startswith("sshd") or is_installing


def ran_before_silence(seen):
    return all(done.ran for done in seen.done if is_silent(done))


def hosts_in(text):
    """The hosts that a text names, singly or folded."""
    names = set()
    for name, numbers in NODES.findall(text):
        for part in numbers.strip("[]").split(","):
            first, _, last = part.partition("-")
            names |= {f"{name}{number}" for number in range(int(first), int(last or first) + 1)}
    return names


def is_unwatched(host, seen):
    """Agent and guard were killed there, and hvrun, too, or hvrun has said that it could not look there."""
    killed = {target for done in seen.done if done.fault.kind == "kill" and done.fault.host in (host, LOGIN)
              for target in done.fault.target.split(" and ")}
    return {"agent", "guard"} <= killed and ("hvrun" in killed or host in unswept_hosts(seen))


def unswept_hosts(seen):
    return {name for match in SWEPT_IN_VAIN.findall(seen.err) for name in hosts_in(" ".join(match))}


def after_all(plan, seen, rest):
    """The same once what was stopped goes on: only a dead link excuses anything then."""
    cut = [done for done in seen.done if done.fault.kind in ("cut", "flap")]
    silent = silent_hosts(plan, cut)
    return [each for each in rest if not is_across_silence(each, silent, seen) and not is_unwatched(each.host, seen)]


def judge_rest(seen):
    for when, left in (("", seen.left), (" once what was stopped went on", seen.left_after_all)):
        if left:
            yield Violation("left behind", f"processes{when}: " + "; ".join(f"{each.host}: {each.text}" for each in left))
    files = [each for each in seen.new_files if not is_agent_copy(each) and not is_unwatched_cgroup(each, seen)]
    if files and not has_silence_in_start(seen):
        yield Violation("left behind", f"files: {files}")
    if seen.sockets and not has_silence_in_start(seen):
        yield Violation("left behind", f"sockets: {seen.sockets}")


def is_agent_copy(name):
    return re.search(r"/run/home/root/\.cache(/hvrun(/agent-[0-9a-f]+)?)?$", name) is not None


def is_unwatched_cgroup(name, seen):
    host, _, what = name.partition(": ")
    return what.startswith("cgroup ") and is_unwatched(host, seen)


def has_silence_in_start(seen):
    return any(is_silent(done) for done in seen.done) and not ran_before_silence(seen)


# ---- output


def judge_output(plan, seen):
    shown = lines_by_rank(seen.out)
    for rank in sorted(set(shown) - set(range(plan.size))):
        yield Violation("output", f"a line of no rank: {shown[rank][0]!r}")
    for rank in range(plan.size):
        written = seen.journals.get(rank, "").count(".")
        may_be_cut = is_output_lost(rank, plan, seen)
        streams = {"stdout": shown.get(rank, [])}
        if plan.output_dir:
            streams["its file"] = seen.files.get(rank, b"").splitlines(keepends=True)
        least = shown_before_kill(rank, plan, seen)
        for name, lines in streams.items():
            yield from judge_stream(f"rank {rank}, {name}", rank, plan.length, lines, written, may_be_cut)
            if len(lines) < least:
                yield Violation("output", f"rank {rank}, {name}: {len(lines)} lines, and {least} were older than "
                                          f"{SHOWN_WITHIN:g} s when hvrun was killed")
        if plan.output_dir and not may_be_cut and shown.get(rank, []) != streams["its file"]:
            yield Violation("output", f"rank {rank}: its file and stdout differ")


def lines_by_rank(out):
    """{rank: its lines without label}; None: what has no label. The last line may lack its end."""
    found = {}
    for line in out.splitlines(keepends=True):
        label = re.match(rb"\[(\d+)\] ", line)
        found.setdefault(int(label.group(1)) if label else -1, []).append(line[label.end():] if label else line)
    return found


def expected(rank, number, length):
    head = b"%04d %012d " % (rank, number)
    return head + bytes([ord("a") + number % 26]) * (max(length, HEAD) - HEAD) + b"\n"


def judge_stream(what, rank, length, lines, written, may_be_cut):
    for number, line in enumerate(lines):
        wanted = expected(rank, number, length)
        if line == wanted:
            continue
        is_last = number + 1 == len(lines)
        if may_be_cut and is_last and wanted.startswith(line.rstrip(b"\n")):
            continue
        yield Violation("output", f"{what}: line {number} is {line[:60]!r}, not {wanted[:60]!r}")
        return
    if len(lines) > written + 1:  # the journal is one behind, at most
        yield Violation("output", f"{what}: {len(lines)} lines, and the rank wrote {written}")
    if len(lines) < written and not may_be_cut:
        yield Violation("output", f"{what}: {len(lines)} lines, and the rank wrote {written}")


def is_output_lost(rank, plan, seen):
    """Whether output of this rank may be missing at its end: what carried or wrote it was hit, or the user waited no longer."""
    if seen.code == 0:
        return False
    for done in seen.done:
        fault = done.fault
        if fault.kind == "disk" or fault.kind == "term" and fault.target == "hvrun" and fault.seconds is not None:
            return True
        if is_harmless(done, plan) or fault.target in ("rank", "child") or fault.kind == "term" and fault.target == "hvrun":
            continue
        if fault.host in (LOGIN, plan.host_of(rank)):
            return True
    return not seen.in_time


def shown_before_kill(rank, plan, seen):
    """How many lines of this rank must be there although hvrun was killed: 0 where something before may have held them up."""
    if seen.stall > SHOWN_WITHIN / 2:
        return 0
    for done in seen.done:
        fault = done.fault
        if (fault.kind, fault.target) == ("kill", "hvrun"):
            return done.written[rank] if done.written else 0
        if fault.target not in ("rank", "child", "guard") and fault.host in (LOGIN, plan.host_of(rank)):
            return 0
    return 0


# ---- reports


def judge_reports(seen):
    for line in seen.err.splitlines():
        if REPORTS.search(line):
            yield Violation("report", line[:400])
    if seen.cores:
        yield Violation("core", f"core files: {seen.cores}")
