# SPDX-License-Identifier: Apache-2.0
"""Start-up files of the login shell that read standard input, over a real sshd."""

import pytest

from harness.jobs import START, expect_error, expect_hosts, on

pytestmark = pytest.mark.usefixtures("hvrun")


@pytest.fixture(params=[[], ["--rsh", "ssh"]], ids=["libssh", "ssh"])
def launch(request, cluster):
    """launch(text): the result of a job on a host whose ~/.bashrc has this text."""
    def run(text):
        cluster["node1"].write_file("/run/home/root/.bashrc", text + "\n")
        cluster["node1"].set_login_shell("/bin/bash")
        return cluster.run([*on("node1"), *request.param, "hostname"])
    return run


@pytest.mark.parametrize("text", ["read x", "read x\nread y", "head -n 1 >/dev/null"], ids=["read", "twice", "head"])
def test_lines_that_are_read_are_not_the_agents(launch, text):
    expect_hosts(launch(text), "node1")


def test_a_cat_of_standard_input_is_an_error_at_once(launch):
    _, hint = expect_error(launch("cat"), START, "node1", "read standard input to its end")
    assert "[ -t 0 ] || return" in hint
    expect_hosts(launch("[ -t 0 ] || return\ncat"), "node1")
