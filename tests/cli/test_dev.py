"""./dev says what it does not do, before it does anything. SPDX-License-Identifier: Apache-2.0"""

import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def dev(*words, prefix=(), **environment):
    return subprocess.run([*prefix, ROOT / "dev", *words], cwd="/", env={**os.environ, **environment}, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=60)


def test_help_names_every_command():
    done = dev("help")
    for command in ("build", "test", "chaos", "demo", "lint", "format", "bench", "clean", "help"):
        assert f"./dev {command}" in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize("word, nearest", [("tset", "./dev test"), ("biuld", "./dev build"), ("xyzzy", "./dev help")])
def test_an_unknown_word_is_an_error_with_the_nearest_name(word, nearest):
    done = dev(word)
    assert done.returncode == 2 and word in done.stderr and nearest in done.stderr


@pytest.fixture
def folder():
    """One that everybody may read: each pytest that starts on this machine closes the parent of tmp_path to others."""
    with tempfile.TemporaryDirectory(prefix="hvrun-dev-") as made:
        os.chmod(made, 0o755)
        yield pathlib.Path(made)


@pytest.fixture
def copy(folder):
    """copy(words...) runs a copy of ./dev in a folder without sources, where nothing can be spoilt."""
    for part in ("dev", "packaging"):
        (shutil.copytree if (ROOT / part).is_dir() else shutil.copy)(ROOT / part, folder / part)

    def run(*words, prefix=(), **environment):
        return subprocess.run([*prefix, folder / "dev", *words], env={**os.environ, **environment}, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=60)

    return run


@pytest.mark.parametrize("words, said", [
    (["build", "--foo"], "build takes no argument, not '--foo'"),
    (["lint", "src"], "lint takes no argument, not 'src'"),
    (["format", "src"], "format takes no argument, not 'src'"),
    (["clean", "dev"], "clean takes no argument, not 'dev'"),
    (["help", "me"], "help takes no argument, not 'me'"),
    (["test", "--fulll"], "test knows --full, --times, --changed, --seed, labels and paths, not '--fulll'"),
    (["test", "--seed"], "--seed needs a commit's hash"),
    (["test", "--changed", "unit"], "--changed chooses the tests itself, so 'unit' has no effect"),
    (["chaos"], "chaos needs --seed, from which everything is drawn"),
    (["chaos", "--count", "3"], "chaos needs --seed, from which everything is drawn"),
    (["demo", "3"], "demo knows only --hosts N, not '3'"),
    (["demo", "--hosts"], "--hosts needs a number"),
    (["demo", "--hosts", "0"], "--hosts takes a number from 1 to 99, not '0'"),
    (["demo", "--hosts", "x"], "--hosts takes a number from 1 to 99, not 'x'"),
    (["demo", "--hosts=100"], "--hosts takes a number from 1 to 99, not '100'"),
    (["demo", "--hosts", "3", "4"], "demo knows only --hosts N, not '4'"),
])
def test_what_a_command_does_not_know_is_refused_before_anything_is_done(copy, folder, words, said):
    (folder / "build").mkdir()
    done = copy(*words)
    assert (done.returncode, done.stdout) == (2, "") and f"dev: {said}\n" in done.stderr
    assert list((folder / "build").iterdir()) == []


@pytest.mark.parametrize("command", ["build", "test", "chaos", "demo", "lint", "format", "bench", "clean", "help"])
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_every_command_shows_the_help_and_does_nothing_else(copy, folder, command, option):
    (folder / "build").mkdir()
    done = copy(command, option)
    assert done.returncode == 0 and "./dev clean " in done.stdout
    assert (folder / "build").is_dir()


def test_clean_removes_what_was_built(copy, folder):
    (folder / "build" / "release").mkdir(parents=True)
    assert copy("clean").returncode == 0
    assert not (folder / "build").exists() and (folder / "dev").exists()


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


needs_root = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root to become somebody else")
NOBODY = 65534
BECOME_NOBODY = ["setpriv", "--reuid", str(NOBODY), "--clear-groups"]


@needs_root
@pytest.mark.parametrize("words, again", [
    (["demo", "--hosts", "3"], "demo --hosts 3"), (["demo", "--hosts=3"], "demo --hosts 3"), (["chaos", "--seed", "1"], "chaos --seed 1")])
def test_hosts_need_root_and_it_says_so(copy, words, again):
    done = copy(*words, prefix=BECOME_NOBODY)
    assert done.returncode == 2 and "root" in done.stderr and f"sudo ./dev {again}" in done.stderr


@needs_root
@pytest.mark.parametrize("command", ["build", "demo", "clean"])
def test_a_build_folder_of_somebody_else_is_named_before_anything_is_done(copy, folder, command):
    (folder / "build" / "release").mkdir(parents=True)
    os.chown(folder / "build", NOBODY, NOBODY)
    done = copy(command, prefix=BECOME_NOBODY, **stand_in("dpkg-query", "printf installed"))
    assert done.returncode == 2 and "dev: build/release belongs to root\n" in done.stderr
    assert 'sudo chown -R "$USER" build' in done.stderr
    assert (folder / "build" / "release").exists()


@needs_root
def test_what_sudo_builds_belongs_to_who_called_sudo(copy, folder):
    built = {**stand_in("dpkg-query", "printf installed"), **stand_in("cmake", "mkdir -p build/release/bin")}
    (folder / "build").mkdir()
    (folder / "build" / "link").symlink_to("nowhere")
    for _ in range(2):  # the second finds what the first gave away
        done = copy("build", SUDO_UID=str(NOBODY), SUDO_GID=str(NOBODY), **built)
        assert done.returncode == 0, done.stderr
    for path in (folder / "build", folder / "build" / "release" / "bin"):
        assert (path.stat().st_uid, path.stat().st_gid) == (NOBODY, NOBODY)
    assert (folder / "dev").stat().st_uid == 0


def test_a_build_with_nothing_to_do_says_only_where_it_lies(copy):
    silent = {**stand_in("dpkg-query", "printf installed"),
              **stand_in("cmake", "[ $1 = --preset ] || printf '[0/2] Re-checking globbed directories...\\nninja: no work to do.\\n'")}
    done = copy("build", **silent)
    assert (done.returncode, done.stderr) == (0, "dev: built build/release/bin/hvrun\n")


@pytest.mark.parametrize("words", [["--list"], ["--plot-from", "/dev/null"], ["--plot-from=/dev/null"]])
def test_what_only_tells_of_benchmarks_disturbs_none_that_runs(tmp_path, words):
    built = tmp_path / "built"
    done = dev("bench", *words, **stand_in("dpkg-query", "printf installed"), **stand_in("cmake", f"echo built >{built}; return 1"))
    assert done.returncode == 0, done.stderr
    assert ("allreduce-64m" in done.stdout) == (words == ["--list"])
    assert not built.exists()
