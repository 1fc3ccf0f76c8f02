# SPDX-License-Identifier: Apache-2.0
"""A program or folder that is not there is an error before any rank starts, naming host, path, reason and mend."""

import pytest

from harness.jobs import START, errors, expect_error, on

pytestmark = pytest.mark.usefixtures("hvrun")

NODES = ("node1", "node2", "node3")


@pytest.fixture
def witness(cluster):
    """(its text, a check): a program that would leave a mark if any rank started."""
    mark = cluster.shared / "ran"
    script = f"#!/bin/sh\ntouch {mark}\n"
    return script, lambda: not mark.exists()


def place(cluster, names, path, content, mode=0o755):
    for name in names:
        cluster[name].write_file(path, content, mode=mode)


def test_a_program_that_is_nowhere(cluster):
    result = cluster.run([*on(*NODES), "/no/such/program"])
    text, _ = expect_error(result, START, "/no/such/program", "No such file")
    assert "node[1-3]" in text, text


def test_a_program_that_is_nowhere_in_path(cluster):
    text, _ = expect_error(cluster.run([*on(*NODES), "no-such-program"]), START, "no-such-program")
    assert "node[1-3]" in text, text


def test_a_program_that_one_host_lacks(cluster, witness):
    script, nobody_ran = witness
    place(cluster, ("node1", "node3"), "/tmp/train", script)
    text, _ = expect_error(cluster.run([*on(*NODES), "/tmp/train"]), START, "node2", "/tmp/train", "No such file")
    assert "node1" not in text and "node3" not in text
    assert nobody_ran()


def test_a_program_that_may_not_be_executed_on_one_host(cluster, witness):
    script, nobody_ran = witness
    place(cluster, ("node1", "node3"), "/tmp/train", script)
    place(cluster, ["node2"], "/tmp/train", script, mode=0o644)
    expect_error(cluster.run([*on(*NODES), "/tmp/train"]), START, "node2", "/tmp/train", "ermission denied")
    assert nobody_ran()


def test_a_folder_in_place_of_a_program(cluster):
    expect_error(cluster.run([*on(*NODES), "/tmp"]), START, "/tmp", "node[1-3]")


def test_a_script_whose_interpreter_one_host_lacks(cluster, witness):
    script, nobody_ran = witness
    place(cluster, ("node1", "node3"), "/tmp/train", script)
    place(cluster, ["node2"], "/tmp/train", "#!/no/such/interpreter\n")
    result = cluster.run([*on(*NODES), "/tmp/train"])
    expect_error(result, START, "node2", "/tmp/train", "/no/such/interpreter")
    assert nobody_ran()


def test_a_working_directory_that_is_nowhere(cluster):
    result = cluster.run([*on(*NODES), "--wdir", "/no/such/folder", "true"])
    text, _ = expect_error(result, START, "/no/such/folder", "No such file")
    assert "node[1-3]" in text, text


def test_a_working_directory_that_one_host_lacks(cluster, witness):
    script, nobody_ran = witness
    place(cluster, NODES, "/tmp/train", script)
    place(cluster, ("node1", "node3"), "/tmp/here/file", "")
    result = cluster.run([*on(*NODES), "--wdir", "/tmp/here", "/tmp/train"])
    text, _ = expect_error(result, START, "node2", "/tmp/here", "No such file")
    assert "node1" not in text
    assert nobody_ran()


def test_the_current_directory_of_hvrun_that_one_host_lacks(cluster, witness):
    script, nobody_ran = witness
    place(cluster, NODES, "/run/train", script)
    for name in ("login", "node1", "node3"):
        cluster[name].write_file("/tmp/here/file", "")
    _, hint = expect_error(cluster.run([*on(*NODES), "/run/train"], cwd="/tmp/here"), START, "node2", "/tmp/here")
    assert "--wdir" in hint
    assert nobody_ran()


def test_a_file_in_place_of_a_working_directory(cluster):
    place(cluster, NODES, "/tmp/here", "")
    expect_error(cluster.run([*on(*NODES), "--wdir", "/tmp/here", "true"]), START, "/tmp/here", "Not a directory")


def test_two_hosts_with_different_troubles_are_both_told(cluster, witness):
    script, nobody_ran = witness
    place(cluster, ["node1"], "/tmp/train", script)
    place(cluster, ["node2"], "/tmp/train", script, mode=0o644)
    result = cluster.run([*on(*NODES), "/tmp/train"])
    told = errors(result)
    assert result.code == START and len(told) == 2 and all(hint for _, hint in told), str(result)
    assert any("node2" in text and "ermission" in text for text, _ in told), str(result)
    assert any("node3" in text and "No such file" in text for text, _ in told), str(result)
    assert nobody_ran()


def test_a_program_named_relative_to_the_working_directory(cluster):
    place(cluster, NODES, "/tmp/here/train", "#!/bin/sh\npwd\n")
    result = cluster.run([*on(*NODES), "--wdir", "/tmp/here", "./train"])
    assert result.code == 0 and sorted(result.out.splitlines()) == [f"[{rank}] /tmp/here" for rank in range(3)], str(result)
