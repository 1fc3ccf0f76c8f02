# SPDX-License-Identifier: Apache-2.0
"""One run: makes hosts, starts hvrun, does the plan's faults at their moments, and writes down what came of it."""

import collections
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import threading
import time

from chaos import faults, judge
from chaos.plan import LOGIN
from harness import processes, programs
from harness.cluster import Cluster

STEP = 0.004  # between two looks at a job
TO_START = 90  # seconds in which a moment comes, or hvrun has ended, also on a busy machine
NO_TARGET = 5  # seconds after a fault's moment in which what it is to hit has to be there
PRIVATE = ("/tmp", "/var/tmp", "/dev/shm", "/run/user", "/run/home")  # where a host could keep something of a job
LISTENING = "0A"  # a state in /proc/net/tcp
FINISH = "finish"  # chaos_rank.c waits for it


class Stalls:
    """The longest time for which this machine let a thread wait that wanted to run at once."""

    PERIOD = 0.05

    def __init__(self):
        self.longest = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._measure, daemon=True)

    def _measure(self):
        before = time.monotonic()
        while not self._over.wait(self.PERIOD):
            now = time.monotonic()
            self.longest, before = max(self.longest, now - before - self.PERIOD), now

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()


class Job:
    """hvrun with a plan's job, and what can be seen of it from outside while it runs."""

    def __init__(self, plan, cluster, folder):
        self.plan, self.cluster, self.folder = plan, cluster, folder
        self.own = cluster.shared / "run"  # journals, and hvrun's working directory
        self.own.mkdir(mode=0o777)
        self.logs = self.own / "logs"
        if plan.fills():
            cluster.login.shell(f"mkdir {faults.LOGS} && mount -t tmpfs -o size=16m none {faults.LOGS}")
            self.logs = cluster.login.outside(faults.LOGS)
        self.lines_at_finish = None
        self.counts = collections.deque()  # (time, lines of each rank), of the last seconds
        self.out_path, self.err_path = folder / "stdout", folder / "stderr"
        self.running = None

    def start(self):
        """harness's Running: leaving its 'with' ends it."""
        out, err = (os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC) for path in (self.out_path, self.err_path))
        try:
            self.running = self.cluster.start(self.command(), cwd=str(self.own), stdout=out, stderr=err)
        finally:
            os.close(out)
            os.close(err)
        return self.running

    def command(self):
        plan = self.plan
        hosts = ",".join(f"{name}:{ranks}" for name, ranks in zip(plan.nodes, plan.ranks_on))
        words = ["hvrun", "-v", "-np", str(plan.size), "-H", hosts, "--lost-after", str(plan.lost_after), "--grace", str(plan.grace),
                 "--start-timeout", str(plan.start_timeout), "--summary", str(self.own / "summary.json")]
        words += ["--rsh", plan.rsh] if plan.rsh else []
        words += ["--output-dir", faults.LOGS if plan.fills() else str(self.logs)] if plan.output_dir else []
        return [*words, rank_program(), str(self.own), plan.program, f"length={plan.length}", f"pace={plan.pace_ms}", f"term={plan.term}"]

    @property
    def ended(self):
        return self.running.ended

    @property
    def err(self):
        return self.err_path.read_bytes().decode(errors="backslashreplace")

    def lines_of(self, rank):
        """So many lines the rank has written."""
        try:
            return os.stat(self.own / f"journal.{rank}").st_size
        except FileNotFoundError:
            return 0

    def count_lines(self, now):
        """At every step."""
        self.counts.append((now, tuple(map(self.lines_of, range(self.plan.size)))))
        while len(self.counts) > 1 and self.counts[1][0] <= now - judge.SHOWN_WITHIN:
            self.counts.popleft()

    def written_before(self, now):
        """Lines of each rank judge.SHOWN_WITHIN before now; () where nobody had counted by then."""
        time_of, lines = self.counts[0]
        return lines if time_of <= now - judge.SHOWN_WITHIN else ()

    def connections_to(self, host):
        """What carries a connection to that host: the server's process for it."""
        return [each for each in faults.newcomers(self.cluster)[host] if each.name.startswith("sshd")]

    def let_ranks_end(self):
        if self.lines_at_finish is None:
            self.lines_at_finish = [self.lines_of(rank) for rank in range(self.plan.size)]
            (self.own / FINISH).touch()


@dataclasses.dataclass
class Course:
    """How far a run is: faults to do, what was done, what is to be undone and when."""

    pending: list
    done: list = dataclasses.field(default_factory=list)  # judge.Done
    undos: list = dataclasses.field(default_factory=list)  # (time, fault, processes hit)
    for_good: list = dataclasses.field(default_factory=list)  # (fault, processes hit)
    came: float = None  # when the moment of the first pending fault came
    last: float = 0.0  # when the last thing was done: from then on hvrun has its time to end
    says: list = dataclasses.field(default_factory=list)

    def note(self, text):
        self.says.append(f"{time.monotonic():.3f} {text}")


def rank_program():
    program = programs.hvrun_folder() / "tests" / faults.RANK
    assert program.exists(), f"{program} is not built: ./dev chaos builds it"
    return str(program)


def run_one(plan, folder):
    """What was seen, as a judge.Seen; folder has hvrun's output and, from here, whatever explains it."""
    with Cluster(plan.nodes, cgroup=plan.cgroup) as cluster:
        before = files_of(cluster)
        job = Job(plan, cluster, folder)
        course = Course(pending=list(plan.faults))
        course.note("begin")
        with Stalls() as stalls, job.start():
            seen = judge.Seen(in_time=conduct(job, course))
            if not seen.in_time:
                (folder / "stuck").write_text(describe_stuck(job))
                job.running.kill()
            seen.code = job.running.process.wait()
            ended = time.monotonic()
            course.note(f"hvrun has ended: {seen.code}")
            seen.took, seen.done, seen.missed = ended - course.last, course.done, len(plan.faults) - len(course.done)
            seen.err = job.err
            watch_the_rest(job, course, seen, ended)
        seen.stall = stalls.longest
        gather(job, seen, before)
        (folder / "processes").write_text(cluster.report())
        (folder / "timeline").write_text("\n".join([*course.says, f"longest stall of this machine: {seen.stall:.3f} s", ""]))
        keep_logs(job)
    return seen


def conduct(job, course):
    """Until hvrun has ended (True) or has had all the time that its options give it (False)."""
    course.last = time.monotonic()
    while not job.ended:
        now = time.monotonic()
        job.count_lines(now)
        undo_due(job, course, now)
        if course.pending:
            do_next(job, course, now)
            limit = TO_START
        elif not course.undos:
            if now >= course.last + job.plan.linger and job.lines_at_finish is None:
                job.let_ranks_end()
                course.last = now
            limit = judge.time_to_end(job.plan, faults.RUN in job.err)
        if not course.undos and now > course.last + limit:
            course.note("hvrun has not ended")
            return False
        time.sleep(STEP)  # sleep-ok: the step of a polling loop
    return True


def do_next(job, course, now):
    fault = course.pending[0]
    if course.came is None:
        if not faults.has_come(fault, job):
            return
        course.came = now
    if now < course.came + fault.after:
        return
    has_run, written = faults.RUN in job.err, job.written_before(now)
    hit = faults.inject(fault, job)
    if hit is None and now < course.came + fault.after + NO_TARGET:
        return
    course.pending.pop(0)
    course.came, course.last = None, time.monotonic()
    if hit is None:
        return course.note(f"missed: {fault}")
    course.note(f"done: {fault}: {[str(each) for each in hit]}")
    course.done.append(judge.Done(fault, tuple((each.pid, each.start) for each in hit), has_run, written))
    if fault.seconds is None:
        course.for_good.append((fault, hit))
    else:
        course.undos.append((course.last + fault.seconds, fault, hit))


def undo_due(job, course, now):
    for undo in [undo for undo in course.undos if undo[0] <= now]:
        course.undos.remove(undo)
        faults.undo(*undo[1:], job)
        course.note(f"over: {undo[1]}")
        course.last = time.monotonic()


def watch_the_rest(job, course, seen, ended):
    """Until nothing of the job is left, or too long: once as it is, and once what was stopped goes on."""
    limit = ended + judge.time_to_vanish(job.plan, seen.done)
    while True:
        now = time.monotonic()
        undo_due(job, course, now)
        seen.left = judge.leftovers(job.plan, seen, rest_of(job))
        if not seen.left or now > limit:
            break
        time.sleep(STEP * 5)  # sleep-ok: the step of a polling loop
    seen.vanished_after = None if seen.left else now - ended
    course.note(f"left: {[each.text for each in seen.left]}")
    for _, fault, hit in course.undos:
        faults.undo(fault, hit, job)
    for fault, hit in course.for_good:
        if fault.kind == "stop":
            faults.undo(fault, hit, job)
    course.undos.clear()
    limit = time.monotonic() + (judge.time_to_vanish(job.plan, seen.done) if not seen.left else 0)
    while (rest := judge.after_all(job.plan, seen, rest_of(job))) and time.monotonic() < limit:
        time.sleep(STEP * 5)  # sleep-ok: the step of a polling loop
    seen.left_after_all = rest
    course.note(f"left after all: {[each.text for each in rest]}")


def rest_of(job):
    """Every process on any host that is none of the host's own."""
    found = []
    for host, there in faults.newcomers(job.cluster).items():
        for each in there:
            environment = each.environment
            found.append(judge.Rest(host, each.pid, each.start, each.parent, each.name, "HVRUN_JOB_ID" in environment, str(each)))
    return found


# ---- what stays behind in files


def gather(job, seen, before):
    """Reads what the job has written, while its hosts are still there."""
    seen.out = job.out_path.read_bytes()
    seen.err = job.err
    with contextlib.suppress(OSError, ValueError):
        seen.summary = json.loads((job.own / "summary.json").read_text())
    for rank in range(job.plan.size):
        with contextlib.suppress(FileNotFoundError):
            seen.journals[rank] = (job.own / f"journal.{rank}").read_text()
        with contextlib.suppress(FileNotFoundError):
            seen.files[rank] = (job.logs / f"rank.{rank}" / "stdout").read_bytes()
    seen.new_files = sorted(files_of(job.cluster) - before)
    seen.sockets = [f"{host.name}: {socket}" for host in job.cluster.hosts.values() for socket in sockets_of(host)]
    seen.cores = sorted(str(path.name) for path in job.own.rglob("core*") if path.is_file())


def files_of(cluster):
    """Every file and directory that the hosts have for themselves, and every cgroup below theirs, as 'host: path'."""
    found = set()
    for host in cluster.hosts.values():
        for place in PRIVATE:
            found |= {f"{host.name}: {place}/{path}" for path in names_below(host.outside(place))}
        if host.cgroup:
            found |= {f"{host.name}: cgroup {path.name}" for path in host.cgroup.path.iterdir() if path.is_dir()}
    return found


def names_below(root):
    """Of one file system: a checkout below /tmp is another one, which every host sees there."""
    if not root.is_dir():
        return
    device = root.stat().st_dev
    for folder, folders, names in os.walk(root):
        here = pathlib.Path(folder).relative_to(root)
        folders[:] = [name for name in folders if is_of(device, folder, name, root.name == "home")]
        yield from ((here / name).as_posix() for name in [*folders, *names])


def is_of(device, folder, name, are_mounts_own):
    return are_mounts_own or os.lstat(os.path.join(folder, name)).st_dev == device  # each home is a file system


def sockets_of(host):
    """hvrun's names in the abstract namespace, and TCP ports that something listens at."""
    proc = pathlib.Path(f"/proc/{host.pid}/net")
    for line in (proc / "unix").read_text().splitlines():
        if "@hvrun" in line:
            yield line.split()[-1]
    for name in ("tcp", "tcp6"):
        for line in (proc / name).read_text().splitlines()[1:]:
            port = int(line.split()[1].rpartition(":")[2], 16)
            if line.split()[3] == LISTENING and port != 22:
                yield f"listens at TCP port {port}"


def keep_logs(job):
    """What explains a violation, out of the hosts that end now."""
    for name in [path.name for path in job.own.iterdir() if re.match(r"journal|summary", path.name)]:
        shutil.copy(job.own / name, job.folder / name)
    for host in job.cluster.nodes:
        with contextlib.suppress(OSError):
            (job.folder / f"sshd.{host.name}.log").write_bytes(host.outside("/run/sshd.log").read_bytes())
    if job.plan.output_dir and job.logs.is_dir():
        shutil.copytree(job.logs, job.folder / "logs", ignore=lambda _, names: {"filler"} & set(names), dirs_exist_ok=True)


def describe_stuck(job):
    """Processes, and where hvrun stands."""
    stack = ""
    if shutil.which("eu-stack"):
        stack = subprocess.run(["timeout", "20", "eu-stack", "-p", str(job.running.pid)], capture_output=True, text=True).stdout
    return f"{job.cluster.report()}\n{LOGIN}'s hvrun:\n{stack}\n{processes.listing(processes.below(job.running.pid))}\n"
