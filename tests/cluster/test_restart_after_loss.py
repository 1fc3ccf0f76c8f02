# SPDX-License-Identifier: Apache-2.0
"""--restarts over several hosts: a lost host, which cannot be reached at first when the job starts again."""

import json

import pytest

from harness import sshd
from harness.jobs import on
from harness.processes import kill_together
from harness.waiting import wait_for

pytestmark = pytest.mark.usefixtures("hvrun")

RANK = "echo attempt $HVRUN_RESTART on $(hostname); [ $HVRUN_RESTART = 0 ] || exit 0; exec tail -f /dev/null"


def test_a_job_whose_host_is_lost_starts_again_once_the_host_is_back(cluster):
    logs, node = cluster.shared / "logs", cluster["node2"]
    words = [*on("node1", "node2"), "--restarts", "9", "--output-dir", str(logs), "sh", "-c", RANK]
    with cluster.start(words, env={"HVRUN_RESTART_DELAY": "0.5"}) as running:
        wait_for(lambda: running.out.count("attempt 0 on") == 2, 30, "both ranks")
        sshd.stop(node)
        kill_together(node.sshd_sessions())
        running.wait_for_output("(restart 2 of 9)", 60)
        sshd.start(node)
        result = running.wait(90)
    assert result.code == 0, str(result)
    assert "(restart 1 of 9): host node2 with rank 1 was lost: " in result.err, str(result)
    assert "(restart 2 of 9): " in result.err and "node2" in result.err.partition("(restart 2 of 9): ")[2].splitlines()[0], str(result)
    last = max(logs.glob("restart.*"), key=lambda path: int(path.suffix[1:]))
    assert f"attempt {last.suffix[1:]} on node2" in result.out, str(result)
    record = json.loads((last / "job.json").read_text())
    assert (record["state"], f"restart.{record['restarts']}") == ("ok", last.name)
