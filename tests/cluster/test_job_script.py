# SPDX-License-Identifier: Apache-2.0
"""Job scripts that `hvrun script` writes, in a real Slurm: run to the end, signalled, put back into the queue."""

import json

import pytest

from harness import programs
from harness.slurm import Slurm, why_not
from harness.waiting import wait_for

pytestmark = pytest.mark.usefixtures("hvrun")

# The sixty seconds of the shortest job, less one: Slurm signals as soon as it looks, which it does every half minute.
NEARLY_OVER = ["--time", "1m", "--signal", "USR1@59"]
UNTIL_TOLD = "trap 'echo told; exit {code}' USR1; echo run $SLURM_RESTART_COUNT; while :; do sleep 0.1; done"


def written(slurm, *words, name="job.slurm"):
    """The path of the script."""
    path = slurm.cluster.shared / name
    result = slurm.cluster.run(["hvrun", "script", "-o", str(path), *words])
    assert result.code == 0, str(result)
    return path


def done(job, timeout=60):
    state, code, output = job.wait(timeout)
    assert (state, code) == ("COMPLETED", "0:0"), f"{state} {code}\n{output}\n{job.slurm.logs()}"
    return output


def ranks_of(output):
    return {line[1:line.index("]")]: line[line.index("]") + 2:] for line in output.splitlines() if line.startswith("[")}


def fields_of(job):
    words = job.slurm.cluster.run(["scontrol", "-o", "show", "job", str(job.number)]).out.split()
    return dict(word.split("=", 1) for word in words if "=" in word)


def wait_for_restart(job, number=1):
    """Not the two minutes that Slurm lets a job wait: a second start in the second of the first end would be refused as revoked."""
    def is_back():
        fields = fields_of(job)
        return fields["Restarts"] == str(number) and fields["JobState"] == "PENDING"

    wait_for(is_back, 150, lambda: f"{fields_of(job)} {job.output}\n{job.slurm.logs()}")
    job.slurm.cluster.run(["scontrol", "update", f"JobId={job.number}", "StartTime=now+2"])


def said(job, text):
    """How many ranks have said so."""
    return sum(line.startswith("[") and line.endswith(text) for line in job.output.splitlines())


def test_a_script_runs_to_its_end(slurm):
    path = written(slurm, "-np", "3", "--nodes", "3", "--time", "1m", "--", "hostname")
    assert ranks_of(done(slurm.submit(path))) == {"0": "node1", "1": "node2", "2": "node3"}


def test_ranks_that_no_node_count_was_given_for_and_words_that_the_shell_would_read(slurm):
    path = written(slurm, "-np", "3", "--cores-per-rank", "2", "--partition", "all", "-x", "A=b c", "--", "sh", "-c", 'echo "$1" "$A"',
                   "x", "$HOME 'quoted' `date`")
    assert set(ranks_of(done(slurm.submit(path))).values()) == {"$HOME 'quoted' `date` b c"}


@pytest.fixture
def small_jean_zay(cluster):
    """A Slurm with Jean Zay's words for its H100 nodes, and the site's file with what nodes have here: two cores, say two GPUs."""
    if reason := why_not():
        pytest.skip(reason)
    site = json.loads((programs.SOURCE / "hostfiles/sites/jean-zay.json").read_text())
    h100 = next(one for one in site["partitions"] if one["name"] == "h100")
    h100.update(cores=2, gpus=2)
    (cluster.shared / "small.json").write_text(json.dumps(site))
    partition = f"PartitionName={h100['queue']} Nodes=ALL MaxTime=10 State=UP\n"
    gpus = "Name=gpu File=/dev/null\nName=gpu File=/dev/zero\n"
    with Slurm(cluster, "GresTypes=gpu\n" + partition, f"Feature={h100['constraint']} Gres=gpu:2", gpus) as made:
        yield made


def test_a_script_for_jean_zay_runs_on_nodes_of_its_kind(small_jean_zay):
    path = written(small_jean_zay, "-np", "6", "--site", str(small_jean_zay.cluster.shared / "small.json"), "--partition", "h100",
                   "--account", "abc", "--signal", "USR1@60", "--time", "2m", "--", "hostname")
    assert "#SBATCH --gres=gpu:2" in path.read_text() and "#SBATCH --constraint=h100" in path.read_text()
    env = {"BASH_FUNC_module%%": '() { echo module "$@"; }'}
    output = done(small_jean_zay.submit(path, env=env))
    assert sorted(ranks_of(output).values()) == ["node1", "node1", "node2", "node2", "node3", "node3"], output
    assert "module purge\nmodule load arch/h100\n" in output


def test_a_job_that_was_told_comes_back_and_ends(slurm):
    rank = f"case ${{SLURM_RESTART_COUNT:-0}} in 1) echo again;; *) {UNTIL_TOLD.format(code=3)};; esac"
    logs = slurm.cluster.shared / "logs"
    words = ["-np", "3", "--nodes", "3", *NEARLY_OVER, "--requeue", "--output-dir", str(logs)]
    job = slurm.submit(written(slurm, *words, "--", "sh", "-c", rank))
    wait_for_restart(job)
    output = done(job, 60)
    assert said(job, "told") == 3 and said(job, "again") == 3 and "put back into the queue" in output, output
    assert "told" in (logs / "run.0/rank.2/stdout").read_text() and (logs / "run.1/rank.2/stdout").read_text() == "again\n"


# name: (options, what the rank does, its end)
DEAF = "trap '' USR1; trap 'echo over; exit 0' TERM; test \"$SLURM_RESTART_COUNT\" || while :; do sleep 0.1; done"
ENDED = "trap 'echo ended; exit 5' TERM; test \"$SLURM_RESTART_COUNT\" || while :; do sleep 0.1; done; echo again"
JOBS = {
    "done": (NEARLY_OVER, UNTIL_TOLD.format(code=0), ("COMPLETED", "0:0", 0)),
    "failed": (NEARLY_OVER, "exit 7", ("FAILED", "7:0", 0)),
    "cancelled": (NEARLY_OVER, UNTIL_TOLD.replace("; exit {code}", ""), ("CANCELLED", None, 0)),
    "deaf": (NEARLY_OVER, DEAF, ("COMPLETED", "0:0", 1)),
    "unsignalled": (["--time", "1m"], ENDED, ("COMPLETED", "0:0", 1)),
    "unending": (NEARLY_OVER, UNTIL_TOLD.format(code=3), ("FAILED", "3:0", 1)),
}


def test_which_ends_of_a_job_bring_it_back(slurm):
    """All at once, for each lasts a minute: 'deaf' ranks run into the time limit, the 'unending' job may come back once."""
    jobs = {}
    for name, (options, rank, _) in JOBS.items():
        path = written(slurm, "-np", "1", *options, "--requeue=1", "--job-name", name, "--", "sh", "-c", rank, name=f"{name}.slurm")
        jobs[name] = slurm.submit(path)
    jobs["cancelled"].wait_for_output("told", 90)
    slurm.cluster.run(["scancel", str(jobs["cancelled"].number)])
    for name, (_, _, (_, _, number)) in JOBS.items():
        if number:
            wait_for_restart(jobs[name])
    for name, (_, _, (state, code, number)) in JOBS.items():
        ended, ended_with, output = jobs[name].wait(150)
        assert (ended, fields_of(jobs[name])["Restarts"]) == (state, str(number)), f"{name}: {output}\n{slurm.logs()}"
        assert code in (None, ended_with), f"{name}: {output}"
    assert "it has come back 1 times" in jobs["unending"].output
    assert said(jobs["unsignalled"], "ended") == 1 and said(jobs["unsignalled"], "again") == 1, jobs["unsignalled"].output
