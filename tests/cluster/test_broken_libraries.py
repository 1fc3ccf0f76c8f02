# SPDX-License-Identifier: Apache-2.0
"""LD_LIBRARY_PATH and LD_PRELOAD that break the programs which hvrun runs for itself: these run without them, ranks keep them."""

import pytest

from harness.jobs import lines_of, on

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


def test_libssh_connects_though_ssh_does_not_run(cluster):
    """With ssh's defaults, and a warning that names the file which nobody reads."""
    cluster.login.write_file("/run/home/root/.ssh/config", "Host *\n", mode=0o600)
    cluster.login.write_file("/run/bin/ssh", "#!/bin/sh\necho 'OpenSSL version mismatch. Built against 1, you have 2' >&2\nexit 255\n",
                             mode=0o755)
    result = cluster.run(["sh", "-c", "PATH=/run/bin:$PATH exec hvrun -np 2 -H node1,node2 hostname"])
    assert (result.code, lines_of(result)) == (0, ["[0] node1", "[1] node2"]), str(result)
    assert "OpenSSL version mismatch" in result.err and "/.ssh/config is not read" in result.err, str(result)


def test_srun_with_a_library_that_does_not_load(slurm, broken):
    path = broken("liblz4.so.1")
    show = "sh -c 'echo $(hostname) $LD_LIBRARY_PATH'"
    job = slurm.batch(f"export LD_LIBRARY_PATH={path}; srun --version; hvrun --no-label {show}", "-N", "2")
    state, code, output = job.wait(60)
    assert "error while loading shared libraries" in output, f"this srun does without liblz4: {output}"
    assert (state, code) == ("COMPLETED", "0:0"), f"{state} {code}\n{output}\n{slurm.logs()}"
    assert f"node1 {path}" in output and f"node2 {path}" in output, output
