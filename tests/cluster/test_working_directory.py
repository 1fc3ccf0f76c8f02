# SPDX-License-Identifier: Apache-2.0
"""What ranks on other hosts take over from hvrun besides its environment: the working directory and the umask."""

import pytest

from harness.jobs import START, expect_error, lines_of, on

pytestmark = pytest.mark.usefixtures("hvrun")


def test_the_umask_is_hvruns_on_every_host(cluster):
    for mask in ("0027", "0000"):
        result = cluster.run(["sh", "-c", f'umask {mask}; exec "$@"', "sh", *on("localhost", "node1"), "sh", "-c", "umask"])
        assert (result.code, lines_of(result)) == (0, [f"[0] {mask}", f"[1] {mask}"]), str(result)


def test_a_link_that_hosts_have_and_its_target_that_they_lack(cluster):
    """As with an automounter: the name is the same everywhere, what it leads to is not."""
    cluster.login.shell("mkdir -p /run/mnt/nfs1/project && ln -s /run/mnt/nfs1/project /run/project")
    cluster["node1"].shell("mkdir /run/project")
    result = cluster.run(["sh", "-c", 'cd /run/project; exec "$@"', "sh", *on("localhost", "node1"), "sh", "-c", "echo $PWD"])
    assert (result.code, lines_of(result)) == (0, ["[0] /run/project", "[1] /run/project"]), str(result)


def test_a_directory_that_a_host_lacks_is_named_with_what_it_leads_to(cluster):
    cluster.login.shell("mkdir -p /run/mnt/nfs1/project && ln -s /run/mnt/nfs1/project /run/project")
    result = cluster.run(["sh", "-c", 'cd /run/project; exec "$@"', "sh", *on("node1"), "true"])
    expect_error(result, START, "node1", "working directory /run/project (/run/mnt/nfs1/project where hvrun runs)", "No such file")
