# SPDX-License-Identifier: Apache-2.0
"""Nothing is left behind: whoever is killed, with ranks that do all they can to stay, counted from outside.

Each test runs on hosts with a cgroup v2 of their own and on hosts without one. A job's end is not the ranks' only:
agents, guards and ssh sessions have to go as well.
"""

import signal
import time

import pytest

from harness import sshd
from harness.jobs import LOST, agents_and_guards, on
from harness.processes import kill_together
from harness.waiting import stays, wait_for

pytestmark = [pytest.mark.usefixtures("hvrun"), pytest.mark.one_of("cluster_of_each_kind")]

NODES = ("node1", "node2", "node3")
STUBBORN = ("plain", "session", "stubborn", "daemon", "stubborn-daemon", "self")
SEEN = len(STUBBORN)  # 'self' is the rank, which signs as 'rank'
AFTER = 5  # seconds, promise 1


class Job:
    """A job of stubborn ranks on three hosts, running."""

    def __init__(self, cluster, roll_call, payload, *options, kinds=STUBBORN):
        self.cluster, self.roll_call = cluster, roll_call
        self.running = cluster.start([*on(*NODES), *options, payload("orphan_maker"), str(roll_call), *kinds])
        self.roll_call.wait_for(len(NODES) * SEEN, 30)
        self.hvrun = self.running.process

    def expect_nobody(self, kill, within=AFTER, but_sshd=False):
        """kill() is the fault; from its instant on the seconds count."""
        began = time.monotonic()
        kill()
        self.roll_call.expect_nobody(within - (time.monotonic() - began), but_sshd)

    def expect_end(self, *codes, names=(), within=5):
        result = self.running.wait(within)
        assert result.code in codes, str(result)
        for name in names:
            assert name in result.err, f"{name} is not named: {result}"
        return result


@pytest.fixture
def cluster(cluster_of_each_kind):
    return cluster_of_each_kind


@pytest.fixture
def job(cluster, roll_call, payload, request):
    options = getattr(request, "param", ())
    made = Job(cluster, roll_call, payload, *options)
    yield made
    made.running.__exit__()


def rank_on(job, name):
    return job.roll_call.pick(name, "rank")[0]


def test_a_job_that_nobody_disturbs_lives(job):
    stays(lambda: len(job.roll_call.alive()) == len(NODES) * SEEN, 1, "every process of the job")
    assert not job.running.ended


def test_the_death_of_a_rank(job):
    job.expect_nobody(rank_on(job, "node2").kill)
    job.expect_end(137, names=["rank 1", "node2"])


def test_the_death_of_a_rank_that_leaves_its_children(job):
    for orphan in job.roll_call.alive("daemon"):
        assert orphan.runs
    job.expect_nobody(rank_on(job, "node1").kill)


def test_sigkill_of_hvrun(job):
    job.expect_nobody(job.hvrun.kill)


@pytest.mark.parametrize("job", [("--grace", "60")], indirect=True)
def test_sigkill_of_hvrun_with_a_long_grace(job):
    job.expect_nobody(job.hvrun.kill)


def test_sigkill_of_an_agent(job):
    agent, _ = agents_and_guards(job.cluster["node2"], job.roll_call)
    job.expect_nobody(agent.kill)
    job.expect_end(LOST, names=["node2"])


def test_sigkill_of_a_guard(job):
    _, guards = agents_and_guards(job.cluster["node2"], job.roll_call)
    assert guards, "no guard"
    job.expect_nobody(lambda: kill_together(guards))


def test_sigkill_of_an_agent_and_its_guard_at_once(job):
    agent, guards = agents_and_guards(job.cluster["node2"], job.roll_call)
    assert guards, "no guard"
    job.expect_nobody(lambda: kill_together([agent, *guards]))
    job.expect_end(LOST, names=["node2"])


def test_sigkill_of_a_guard_and_its_agent_on_every_host_at_once(job):
    killed = []
    for name in NODES:
        agent, guards = agents_and_guards(job.cluster[name], job.roll_call)
        killed += [*guards, agent]
    job.expect_nobody(lambda: kill_together(killed))
    job.expect_end(LOST)


def test_sigkill_of_every_sshd_of_a_host(job):
    node = job.cluster["node2"]
    job.expect_nobody(lambda: kill_together([node.sshd, *node.sshd_sessions()]))
    job.expect_end(LOST, names=["node2"])


def test_sigkill_of_hvrun_and_of_every_agent_at_once(job):
    """Only guards, or cgroups, are left to do it."""
    agents = [agents_and_guards(job.cluster[name], job.roll_call)[0] for name in NODES]
    job.expect_nobody(lambda: (job.hvrun.kill(), kill_together(agents)))


def test_the_listening_sshd_is_not_missed(job):
    sshd.stop(job.cluster["node2"])
    stays(lambda: len(job.roll_call.alive()) == len(NODES) * SEEN, 1, "every process of the job")
    job.expect_nobody(lambda: job.hvrun.send_signal(signal.SIGTERM))


@pytest.mark.parametrize("job", [("--lost-after", "2")], indirect=True)
def test_a_host_whose_link_is_down(job):
    job.expect_nobody(job.cluster["node2"].link_down, within=2 + AFTER, but_sshd=True)
    job.expect_end(LOST, names=["node2"])


@pytest.mark.parametrize("job", [("--lost-after", "2", "--grace", "60")], indirect=True)
def test_a_host_whose_link_is_down_with_a_long_grace(job):
    job.expect_nobody(job.cluster["node2"].link_down, within=2 + AFTER, but_sshd=True)


@pytest.mark.parametrize("job", [("--lost-after", "2")], indirect=True)
def test_hvrun_whose_link_is_down(job):
    job.expect_nobody(job.cluster.login.link_down, within=2 + AFTER, but_sshd=True)
    job.expect_end(LOST)


@pytest.mark.parametrize("job", [("--lost-after", "3")], indirect=True)
def test_a_link_that_is_down_for_less_is_no_loss(job):
    job.cluster["node2"].link_down()
    stays(lambda: not job.running.ended, 1, "the job")
    job.cluster["node2"].link_up()
    stays(lambda: len(job.roll_call.alive()) == len(NODES) * SEEN, 4, "every process of the job")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_hvrun(job, number):
    job.expect_nobody(lambda: job.hvrun.send_signal(number))
    job.expect_end(128 + number, -number)


@pytest.mark.parametrize("job", [("--grace", "60")], indirect=True)
def test_the_same_signal_twice_ends_the_job_at_once(job):
    job.hvrun.send_signal(signal.SIGINT)
    stays(lambda: not job.running.ended, 0.5, "the job, which was asked but once")
    job.expect_nobody(lambda: job.hvrun.send_signal(signal.SIGINT), within=3)


@pytest.mark.parametrize("job", [("--timeout", "8")], indirect=True)
def test_a_timeout(job):
    job.expect_end(4, within=15)
    job.roll_call.expect_nobody(within=1)


def test_a_stopped_hvrun_that_is_killed(job):
    job.hvrun.send_signal(signal.SIGSTOP)
    job.expect_nobody(job.hvrun.kill)


def test_a_good_end_takes_orphans_with_it(cluster, roll_call, payload):
    kinds = [kind for kind in STUBBORN if kind not in ("plain", "self")]
    result = cluster.run([*on(*NODES), payload("orphan_maker"), str(roll_call), *kinds, "nameless", "runner", "exit=0"], timeout=30)
    assert result.code == 0, str(result)
    roll_call.expect_nobody(within=1)


FUGITIVES = ("nameless", "runner")  # no environment to know them by; never the same PID for long


@pytest.mark.parametrize("victim", ["hvrun", "agent", "guard", "sshd"])
def test_fugitives_do_not_escape_whoever_is_killed(cluster, roll_call, payload, victim):
    with cluster.start([*on(*NODES), payload("orphan_maker"), str(roll_call), *FUGITIVES]) as running:
        for role in ("rank", *FUGITIVES):
            roll_call.wait_for(len(NODES), 30, role)
        node = cluster["node2"]
        agent, guards = agents_and_guards(node, roll_call)
        victims = {"hvrun": [running], "agent": [agent], "guard": guards, "sshd": [node.sshd, *node.sshd_sessions()]}[victim]
        kill_together(victims)
        if victim == "guard":
            running.kill(signal.SIGTERM)
        roll_call.expect_nobody(within=AFTER)


def test_a_daemon_that_no_one_can_know_any_more_is_named(cluster, roll_call, payload):
    """Agent and guard are gone at once, and its environment is empty: only a cgroup holds it then."""
    with cluster.start([*on(*NODES), payload("orphan_maker"), str(roll_call), "nameless"]) as running:
        for role in ("rank", "nameless"):
            roll_call.wait_for(len(NODES), 30, role)
        node = cluster["node2"]
        agent, guards = agents_and_guards(node, roll_call)
        kill_together([agent, *guards])
        result = running.wait(15)
        left = roll_call.alive()
        assert len(roll_call.pick("node2")) == len(left) <= 1, left
        named = [line for line in result.err.splitlines() if "may remain of this job" in line]
        assert len(named) == len(left), f"{left} {result}"
        for daemon in left:
            assert f"on host node2 pid {daemon.host_pid} " in named[0], result
            daemon.kill()


@pytest.mark.parametrize("job", [("--lost-after", "2")], indirect=True)
def test_an_agent_that_stands_still_for_good(job):
    agent, _ = agents_and_guards(job.cluster["node2"], job.roll_call)
    job.expect_nobody(lambda: kill_together([agent], signal.SIGSTOP), within=2 + AFTER)
    job.expect_end(LOST, names=["node2"])


def test_a_link_that_is_down_before_the_job_is_set_up(cluster):
    """Its agent waits for the job, since another host does not answer; it leaves after --lost-after all the same."""
    kill_together([cluster["node2"].sshd], signal.SIGSTOP)
    with cluster.start([*on("node1", "node2"), "--lost-after", "2", "true"]):
        def agents():
            return [one for one in cluster["node1"].newcomers() if one.name in ("hvrun-agent", "hvrun-guard")]
        wait_for(lambda: len(agents()) == 2, 20, "an agent and its guard")
        cluster["node1"].link_down()
        wait_for(lambda: not agents(), 2 + AFTER, lambda: f"an end of {agents()}")


def test_a_kill_at_any_moment_of_a_launch_leaves_nothing(cluster, roll_call, payload, chance, scaled):
    for _ in range(scaled(40)):
        with cluster.start([*on(*NODES), payload("orphan_maker"), str(roll_call), *STUBBORN]) as running:
            moment = running.started + chance.uniform(0.02, 1.2)
            wait_for(lambda: time.monotonic() >= moment, 5, "the moment")
        wait_for(lambda: not roll_call.alive() and not cluster.newcomers(), AFTER,
                 lambda: f"nothing is left of a launch killed at {moment - running.started:.3f} s: {cluster.newcomers()}")
