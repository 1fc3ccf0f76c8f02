"""./dev says what it does not do, before it does anything. SPDX-License-Identifier: Apache-2.0"""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def dev(*words, prefix=(), **environment):
    return subprocess.run([*prefix, ROOT / "dev", *words], cwd="/", env={**os.environ, **environment}, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=60)


def test_help_names_every_command():
    done = dev("help")
    for command in ("build", "test", "demo", "lint", "format", "bench", "clean", "help"):
        assert f"./dev {command}" in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize("word, nearest", [("tset", "./dev test"), ("biuld", "./dev build"), ("xyzzy", "./dev help")])
def test_an_unknown_word_is_an_error_with_the_nearest_name(word, nearest):
    done = dev(word)
    assert done.returncode == 2 and word in done.stderr and nearest in done.stderr


def test_test_refuses_what_it_does_not_know():
    assert dev("test", "--fulll").returncode == 2


def test_another_system_gets_the_list_of_packages(tmp_path):
    (tmp_path / "os-release").write_text("ID=fedora\nVERSION_ID=42\n")
    done = dev("build", DEV_OS_RELEASE=str(tmp_path / "os-release"))
    assert done.returncode == 2 and "libssh-dev" in done.stderr and "cmake" in done.stderr


def test_another_release_of_debian_is_said_to_be_untested(tmp_path):
    (tmp_path / "os-release").write_text("ID=ubuntu\nVERSION_ID=24.04\nID_LIKE=debian\n")
    done = dev("build", DEV_OS_RELEASE=str(tmp_path / "os-release"))
    assert "untested" in done.stderr
    assert done.returncode == 2 and "Boost" in done.stderr  # Debian 12's libboost-dev is too old


def stand_in(name, body):
    """A shell function in the command's place: ./dev puts the distribution's folders before any other PATH."""
    return {f"BASH_FUNC_{name}%%": "() { " + body + "; }"}


def test_package_lists_are_fetched_where_none_are(tmp_path):
    (tmp_path / "os-release").write_text("ID=ubuntu\nVERSION_ID=24.04\nID_LIKE=debian\n")
    lists = tmp_path / "lists"
    commands = {**stand_in("dpkg-query", "return 1"),
                **stand_in("sudo", '"$@"'),
                **stand_in("apt-get", f'echo "$*" >>{lists}'),
                **stand_in("apt-cache", f"[ ! -e {lists} ] || echo '  Candidate: 1.74.0.3'")}
    done = dev("build", DEV_OS_RELEASE=str(tmp_path / "os-release"), **commands)
    assert done.returncode == 2 and "libboost-dev here is 1.74.0.3" in done.stderr
    assert lists.read_text() == "update -qq\n"


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root to become somebody else")
def test_hosts_need_root_and_it_says_so(tmp_path):
    for part in ("dev", "packaging"):
        (shutil.copytree if (ROOT / part).is_dir() else shutil.copy)(ROOT / part, tmp_path / part)
    nobody = ["setpriv", "--reuid", "65534", "--clear-groups"]
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    done = subprocess.run([*nobody, tmp_path / "dev", "demo", "--hosts", "3"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "root" in done.stderr and "sudo ./dev demo --hosts 3" in done.stderr
