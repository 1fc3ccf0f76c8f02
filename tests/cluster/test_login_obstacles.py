# SPDX-License-Identifier: Apache-2.0
"""What gets in the way of a login: libraries that keep ssh and srun from running, and start-up files that read standard input."""

import pytest

from harness.jobs import START, expect_error, expect_hosts, lines_of, on

pytestmark = pytest.mark.usefixtures("hvrun")

SHOW = ["sh", "-c", "echo $(hostname) $LD_LIBRARY_PATH"]


@pytest.fixture
def broken(cluster):
    """broken(library): a directory that holds a library of that name which the loader cannot load."""
    def make(name):
        folder = cluster.shared / "lib"
        folder.mkdir()
        (folder / name).write_text("no library")
        return str(folder)
    return make


@pytest.mark.parametrize("options", [[], ["--rsh", "ssh"]], ids=["libssh", "ssh"])
def test_ssh_with_a_crypto_library_that_does_not_load(cluster, broken, options):
    path = broken("libcrypto.so.3")
    assert "libcrypto" in cluster.run(["ssh", "-V"], env={"LD_LIBRARY_PATH": path}).err, "this ssh does without libcrypto"
    result = cluster.run([*on("node1", "node2"), *options, *SHOW], env={"LD_LIBRARY_PATH": path})
    assert (result.code, lines_of(result)) == (0, [f"[0] node1 {path}", f"[1] node2 {path}"]), str(result)
    assert "without them (ranks keep them)" in result.err and "libcrypto" in result.err, str(result)


@pytest.mark.parametrize("error", ["OpenSSL version mismatch. Built against 1, you have 2", "unknown option -- G"])
def test_libssh_connects_though_ssh_does_not_run(cluster, error):
    """With ssh's defaults, and a warning that names the file which is not read."""
    cluster.login.write_file("/run/home/root/.ssh/config", "Host *\n", mode=0o600)
    cluster.login.write_file("/run/bin/ssh", f"#!/bin/sh\necho '{error}' >&2\nexit 255\n", mode=0o755)
    result = cluster.run(["sh", "-c", "PATH=/run/bin:$PATH exec hvrun -np 2 -H node1,node2 hostname"])
    assert (result.code, lines_of(result)) == (0, ["[0] node1", "[1] node2"]), str(result)
    assert error in result.err and "/.ssh/config is not read" in result.err, str(result)


def test_srun_with_a_library_that_does_not_load(slurm, broken):
    path = broken("liblz4.so.1")
    show = "sh -c 'echo $(hostname) $LD_LIBRARY_PATH'"
    job = slurm.batch(f"export LD_LIBRARY_PATH={path}; srun --version; hvrun --no-label {show}", "-N", "2")
    state, code, output = job.wait(60)
    assert "error while loading shared libraries" in output, f"this srun does without liblz4: {output}"
    assert (state, code) == ("COMPLETED", "0:0"), f"{state} {code}\n{output}\n{slurm.logs()}"
    assert f"node1 {path}" in output and f"node2 {path}" in output, output


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
