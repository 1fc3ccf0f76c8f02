"""An installed hvrun works from any directory, also after its prefix was moved. SPDX-License-Identifier: Apache-2.0

Each test works in a prefix that was installed at one place and renamed to another, so that no path of the build or
of the first place can help.
"""

import os
import pathlib
import re
import subprocess

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("HVRUN_TEST_BUILD_DIR", SOURCE / "build/dev"))
PROGRAM = """
#include <hvrun/hvrun.h>
#include <stdio.h>
int main(void) {
  float x = 1;
  if (hvrun_init(NULL, NULL) != HVRUN_OK) return fprintf(stderr, "%s\\n", hvrun_last_error()), 1;
  if (hvrun_allreduce(NULL, "x", &x, &x, 1, HVRUN_FLOAT32, HVRUN_SUM) != HVRUN_OK) return 1;
  printf("rank %d of %d: %g\\n", hvrun_rank(NULL), hvrun_size(NULL), (double)x);
  return hvrun_shutdown(NULL) != HVRUN_OK;
}
"""
PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(hvrun 0.1 REQUIRED)
add_executable(user user.c)
target_link_libraries(user PRIVATE hvrun::hvrun)
file(WRITE ${CMAKE_BINARY_DIR}/hvrun.txt "${HVRUN_EXECUTABLE}")
"""


def run(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("install")
    run("cmake", "--install", BUILD, "--prefix", folder / "first")
    (folder / "first").rename(folder / "moved")
    return folder / "moved"


@pytest.fixture
def user(tmp_path):
    """A folder of a user's own, with the program above."""
    (tmp_path / "user.c").write_text(PROGRAM)
    return tmp_path


def found(prefix, name):
    (path,) = prefix.rglob(name)
    return path


def check_two_ranks(prefix, program, folder):
    out = run(prefix / "bin/hvrun", "-np", "2", "--no-label", program, cwd=folder)
    assert sorted(out.splitlines()) == ["rank 0 of 2: 2", "rank 1 of 2: 2"]


def test_everything_lies_where_it_belongs(prefix):
    for path in ["bin/hvrun", "bin/hvrun-agent", "bin/hvrun-inventory", "bin/hvrun-pmix", "include/hvrun/hvrun.h", "share/man/man1/hvrun.1",
                 "share/man/man1/hvrun-inventory.1",
                 "share/man/man3/hvrun.3", "share/man/man5/hvrun-hostfile.5", "share/man/man5/hvrun-site.5",
                 "share/hvrun/sites/jean-zay.json", "share/hvrun/sites/site.schema.json", "share/man/man7/hvrun-env.7",
                 "share/doc/hvrun/LICENSE"]:
        assert (prefix / path).is_file(), path
    for name in ["libhvrun.so", "hvrun.pc", "hvrun-config.cmake"]:
        assert found(prefix, name).exists()


def test_every_function_has_a_page_of_its_name(prefix):
    functions = re.findall(r"^HVRUN_API.*?(hvrun_\w+)\(", (SOURCE / "runtime/include/hvrun/hvrun.h").read_text(), re.MULTILINE)
    assert "hvrun_enqueue" in functions and len(functions) > 25
    pages = {path.name for path in (prefix / "share/man/man3").iterdir()}
    assert pages == {"hvrun.3", *(f"{function}.3" for function in functions)}
    assert (prefix / "share/man/man3/hvrun_wait.3").read_text() == ".so man3/hvrun.3\n"


def test_the_installed_launcher_runs_from_any_directory(prefix, user):
    assert run(prefix / "bin/hvrun", "-np", "2", "--no-label", "pwd", cwd=user).split() == [str(user)] * 2


def test_what_knows_nccl_and_each_mpi_is_installed_and_opens(prefix, user):
    said = run(prefix / "bin/hvrun", "env", cwd=user)
    for library in ("libhvrun-openmpi.so", "libhvrun-mpich.so"):  # both are among the packages for tests
        assert f" by {found(prefix, library)}" in said, said
    assert found(prefix, "libhvrun-nccl.so").exists()


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_what_knows_an_mpi_looks_for_nothing_else_in_the_process(prefix, mpi):
    """It is linked with no MPI, so that the linker tells of no name that is missing."""
    listed = subprocess.run(["nm", "-uD", found(prefix, f"libhvrun-{mpi}.so")], capture_output=True, text=True, check=True).stdout
    wanted = [words[1] for words in map(str.split, listed.splitlines()) if words[0] == "U" and "@" not in words[1]]
    assert wanted and all(name.startswith(("MPI_", "MPIX_", "ompi_")) for name in wanted), wanted


def test_a_copy_of_hvrun_alone_knows_the_sites_that_ship(prefix, user):
    (user / "hvrun").write_bytes((prefix / "bin/hvrun").read_bytes())
    (user / "hvrun").chmod(0o755)
    for file in (prefix / "share/hvrun/sites").iterdir():
        if file.name != "site.schema.json":
            assert run(user / "hvrun", "script", "--show-site", file.stem, cwd=user) == file.read_text()


def test_a_program_builds_and_runs_with_pkg_config(prefix, user):
    environment = {**os.environ, "PKG_CONFIG_PATH": str(found(prefix, "hvrun.pc").parent)}
    run("sh", "-c", "cc user.c -o user $(pkg-config --cflags --libs hvrun)", cwd=user, env=environment)
    library_path = {**os.environ, "LD_LIBRARY_PATH": str(found(prefix, "libhvrun.so").parent)}
    assert run(user / "user", env=library_path) == "rank 0 of 1: 1\n"


def test_a_program_builds_and_runs_with_find_package(prefix, user):
    (user / "CMakeLists.txt").write_text(PROJECT)
    run("cmake", "-S", user, "-B", user / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", user / "build")
    assert pathlib.Path((user / "build/hvrun.txt").read_text()) == prefix / "bin/hvrun"
    check_two_ranks(prefix, user / "build/user", user)


def test_every_link_of_the_installed_pages_leads_to_an_installed_file(prefix):
    pages = sorted((prefix / "share/doc/hvrun").rglob("*.md"))
    assert {"README.md", "getting-started.md", "known-limits.md", "003-ssh-in-process.md"} <= {page.name for page in pages}
    links = [(page, target) for page in pages for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())]
    assert links and [f"{page.name}: {target}" for page, target in links if not (page.parent / target).exists()] == []


def test_the_program_in_the_readme_does_what_the_readme_shows(prefix, user):
    readme = (SOURCE / "README.md").read_text()
    (user / "hello.c").write_text(re.search(r"```c\n(.*?)```", readme, re.DOTALL).group(1))
    command = re.search(r"^\$ (cc hello\.c .*)$", readme, re.MULTILINE).group(1)
    shown = re.search(r"^\$ hvrun -np 2 ./hello\n(.*?)```", readme, re.MULTILINE | re.DOTALL).group(1)
    run("sh", "-c", command, cwd=user, env={**os.environ, "PKG_CONFIG_PATH": str(found(prefix, "hvrun.pc").parent)})
    out = run(prefix / "bin/hvrun", "-np", "2", "./hello", cwd=user)
    assert sorted(out.splitlines()) == shown.splitlines()


def test_no_path_of_the_build_is_left_in_what_is_installed(prefix):
    programs = [prefix / "bin" / name for name in ("hvrun", "hvrun-agent", "hvrun-inventory", "hvrun-pmix")]
    for path in [*programs, found(prefix, "libhvrun.so")]:
        dynamic = run("readelf", "-d", path)
        assert str(SOURCE) not in dynamic and str(BUILD) not in dynamic
