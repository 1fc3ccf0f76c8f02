# SPDX-License-Identifier: Apache-2.0
"""How a real Slurm ends a job or warns it, where it signals a step's tasks alone, and where it signals every process."""

import pytest

from harness import programs
from harness.slurm import Slurm, why_not
from harness.training import SAVES_SLOWLY, TRAINER
from harness.waiting import wait_for

pytestmark = pytest.mark.usefixtures("hvrun")

EARLY = ["-t", "10", "--signal=USR1@40"]  # a job that near_its_end() brings to that
PREEMPTS = """PreemptType=preempt/partition_prio
PreemptMode=CANCEL
PartitionName=urgent Nodes=ALL MaxTime=10 State=UP PriorityTier=9 PreemptMode=OFF
PartitionName=idle Nodes=ALL MaxTime=10 State=UP PriorityTier=1 GraceTime=60
"""


def until_told(name):
    """A program that says each time that it gets this signal, until none has come for a second after the first."""
    return f"""python3 -c 'import signal
told = [signal.{name}]
signal.pthread_sigmask(signal.SIG_BLOCK, told)
print("ready", flush=True)
signal.sigwait(told)
while True:
    print("told", flush=True)
    if not signal.sigtimedwait(told, 1):
        break'"""


@pytest.fixture
def make_slurm(cluster):
    """make_slurm(settings...): see harness.slurm.Slurm."""
    made = []

    def make(**settings):
        if reason := why_not(settings.get("proctrack", "pgid")):
            pytest.skip(reason)
        made.append(Slurm(cluster, **settings).__enter__())
        return made[-1]

    yield make
    for slurm in made:
        slurm.__exit__()


def lines_with(text, output):
    """Of the ranks: those that hvrun quotes at the end have no label."""
    return sorted(line for line in output.splitlines() if text in line and line.startswith("["))


@pytest.fixture(params=["pgid", "cgroup"])
def proctrack(request):
    """Those by which Slurm signals the agents alone."""
    return request.param


def near_its_end(job):
    """Once its ranks are ready: some seconds later Slurm sends the signal of --signal=...@40."""
    wait_for(lambda: len(lines_with("ready", job.output)) == 3, 60, lambda: job.output)
    job.end_in(60)
    return job


def test_a_signal_near_the_time_limit_reaches_each_rank_once(make_slurm):
    """Slurm signals every process itself; that others get it, too, is said once."""
    slurm = make_slurm(proctrack="linuxproc")
    state, _, output = near_its_end(slurm.batch(f"hvrun {until_told('SIGUSR1')}", "-N", "3", *EARLY)).wait(90)
    assert state == "COMPLETED" and lines_with("told", output) == [f"[{rank}] told" for rank in range(3)], output
    assert output.count("warning: Slurm signals every process of a step itself here (ProctrackType=linuxproc)") == 1, output


def test_ranks_that_slurm_signals_itself_get_sigterm_once(make_slurm):
    """hvrun hears of it on one node, and its agents on the others, before or after Slurm has signalled the ranks there."""
    slurm = make_slurm(kill_wait=60, proctrack="linuxproc")
    job = slurm.batch(f"exec hvrun {until_told('SIGTERM')}", "-N", "3")
    wait_for(lambda: len(lines_with("ready", job.output)) == 3, 60, lambda: job.output)
    slurm.cluster.run(["scancel", str(job.number)])
    wait_for(job.is_over, 60, lambda: f"the end of {job.state}\n{job.output}")
    assert lines_with("told", job.output) == [f"[{rank}] told" for rank in range(3)], job.output


def with_trap(program):
    """As docs/slurm.md has it."""
    page = (programs.SOURCE / "docs" / "slurm.md").read_text()
    begin = page.index("hvrun ./train & pid=$!")
    return page[begin:page.index("```", begin)].replace("./train", program)


def test_a_script_that_passes_a_signal_on_ends_with_hvruns_exit_code(slurm):
    assert slurm.batch(with_trap("sh -c 'exit 9'"), "-N", "3").wait(30)[:2] == ("FAILED", "9:0")
    assert slurm.batch(with_trap("true"), "-N", "3").wait(30)[:2] == ("COMPLETED", "0:0")


def test_a_signal_for_the_batch_script_reaches_the_ranks_through_hvrun(slurm):
    script = with_trap(until_told("SIGUSR1"))
    options = [option.replace("=USR1", "=B:USR1") for option in EARLY]
    output = near_its_end(slurm.batch(script, "-N", "3", *options)).wait(90)[2]
    assert lines_with("told", output) == [f"[{rank}] told" for rank in range(3)], output


@pytest.mark.one_of("proctrack")
@pytest.mark.parametrize("wrapper", ["", "bash -c '\"$@\"; echo code $?' bash "], ids=["alone", "wrapped"])
def test_a_trainer_with_workers_saves_its_state_near_the_time_limit(make_slurm, wrapper, proctrack):
    slurm = make_slurm(proctrack=proctrack)
    path = slurm.cluster.shared / "trainer.py"
    path.write_text(TRAINER)
    job = slurm.batch(f"hvrun --restarts 3 {wrapper}/usr/bin/python3 {path} fork SIGUSR1", "-N", "3", *EARLY)
    state, code, output = near_its_end(job).wait(90)
    assert wrapper or "hvrun: the job does not start again: the job was sent SIGUSR1" in output, output
    assert lines_with("saved", output) == [f"[{rank}] saved" for rank in range(3)], output
    assert (state, code) == (("COMPLETED", "0:0") if wrapper else ("FAILED", "75:0")), output
    assert "warning: Slurm" not in output, output


SAVES_TO_FILES = SAVES_SLOWLY.replace('print("saved", flush=True)', 'open("saved." + os.environ["RANK"], "w").close()')


def saves_slowly(slurm, *options, by="exec", program=SAVES_SLOWLY):
    """A job whose ranks take longer to save their state than the 3 s that a rank's failure leaves the others."""
    path = slurm.cluster.shared / "slow.py"
    path.write_text(program)
    job = slurm.batch(f"{by} hvrun --restarts 3 /usr/bin/python3 {path} 5", "-N", "3", *options)
    for rank in range(3):
        job.wait_for_output(f"[{rank}] agent", 30)
    return job


def expect_saved(job):
    wait_for(job.is_over, 120, lambda: f"the end of {job.state}\n{job.output}")
    assert lines_with("saved", job.output) == [f"[{rank}] saved" for rank in range(3)], job.output
    assert "starts again" not in job.output, job.output


@pytest.mark.one_of("proctrack")
def test_ranks_have_kill_wait_after_scancel(make_slurm, proctrack):
    slurm = make_slurm(kill_wait=60, proctrack=proctrack)
    job = saves_slowly(slurm)
    slurm.cluster.run(["scancel", str(job.number)])
    expect_saved(job)


@pytest.mark.one_of("proctrack")
def test_ranks_have_kill_wait_when_slurm_ends_hvrun_before_them(make_slurm, proctrack):
    """A script without exec: its shell dies of SIGTERM, and Slurm then kills hvrun. The agents have got SIGTERM, too."""
    slurm = make_slurm(kill_wait=60, proctrack=proctrack)
    job = saves_slowly(slurm, by="", program=SAVES_TO_FILES)
    slurm.cluster.run(["scancel", str(job.number)])
    files = [slurm.cluster.shared / f"saved.{rank}" for rank in range(3)]
    wait_for(lambda: all(file.exists() for file in files), 60, lambda: f"{files} of {job.state}\n{job.output}\n{slurm.logs()}")


@pytest.mark.one_of("proctrack")
@pytest.mark.parametrize("by", ["exec", "trap '' TERM; setsid -w srun --overlap -N 1 -n 1"], ids=["script", "step"])
def test_ranks_have_kill_wait_at_the_time_limit(make_slurm, by, proctrack):
    """Slurm sends SIGTERM twice to a step, and so to an hvrun that is one. (An srun that gets it twice kills its step.)"""
    slurm = make_slurm(kill_wait=60, proctrack=proctrack)
    job = saves_slowly(slurm, "-t", "10", by=by)
    job.end_in(1)
    expect_saved(job)
    assert job.state[0] == "TIMEOUT"


@pytest.mark.one_of("proctrack")
def test_ranks_have_kill_wait_when_slurm_warns_them_by_sigterm(make_slurm, proctrack):
    """Long before the time limit: SIGTERM ends the job, and nothing says when Slurm would send SIGKILL."""
    slurm = make_slurm(kill_wait=60, proctrack=proctrack)
    job = saves_slowly(slurm, "-t", "10", "--signal=TERM@45")
    job.end_in(65)
    expect_saved(job)
    assert job.state[0] == "FAILED" and "does not start again: Slurm has sent its agents SIGTERM" in job.output, job.output


def test_ranks_have_the_partitions_grace_time_when_they_are_preempted(make_slurm):
    slurm = make_slurm(more=PREEMPTS)
    job = saves_slowly(slurm, "-p", "idle", "--exclusive")
    urgent = slurm.batch("hostname", "-N", "3", "-p", "urgent", "--exclusive")
    expect_saved(job)
    assert urgent.wait(60)[0] == "COMPLETED"
