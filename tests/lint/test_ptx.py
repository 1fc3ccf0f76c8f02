"""The committed PTX is what CUDA's compiler makes of the kernels, and all drivers that we know take it.

SPDX-License-Identifier: Apache-2.0
"""

import re
import shutil
import subprocess
import warnings

import kernel_sources
import tree

FOLDER = tree.ROOT / "runtime/device/cuda/kernels"
COMMITTED = (FOLDER / "kernels.ptx").read_text()
USUAL_PLACE = "/usr/local/cuda/bin"


def tool(name):
    """CUDA's; None, with a warning: it is not here. No skip: the tests need no CUDA, and in CI every skip counts as a failure."""
    found = shutil.which(name) or shutil.which(name, path=USUAL_PLACE)
    if not found:
        warnings.warn(f"no {name}, of CUDA's compiler, here: the PTX is not compared with the kernels")
    return found


def release(text):
    """The compiler's, as its PTX and --version name it: another one writes other text for the same kernels."""
    return re.search(r"release [\d.]+, V[\d.]+", text)[0]


def test_it_is_of_these_sources():
    """Whatever compiler there is here, or none."""
    told = re.search(r"^// Made of sources (\w+)$", COMMITTED, re.MULTILINE)[1]
    assert told == kernel_sources.digest(kernel_sources.reached()), "runtime/device/cuda/kernels/make_ptx.sh mends this"


def test_sources_that_differ_are_told_and_comments_are_not():
    sources = kernel_sources.reached()
    assert "runtime/device/half.h" in sources and len(sources) > 5
    for path, text in sources.items():
        assert kernel_sources.digest({**sources, path: f"// more\n{text}\n"}) == kernel_sources.digest(sources)
        assert kernel_sources.digest({**sources, path: text + "int more;"}) != kernel_sources.digest(sources)


def test_it_is_made_of_the_kernels():
    if not (nvcc := tool("nvcc")):
        return
    here = release(subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout)
    if here != release(COMMITTED):
        warnings.warn(f"nvcc of {here} here, and the PTX is of {release(COMMITTED)}: they are not compared")
        return
    made = subprocess.run([FOLDER / "make_ptx.sh", nvcc], capture_output=True, text=True, check=True)
    assert made.stderr == ""
    assert made.stdout == COMMITTED, "runtime/device/cuda/kernels/make_ptx.sh mends this"


def test_it_is_for_the_oldest_cards_and_drivers():
    assert re.findall(r"^\.(?:version|target) .*", COMMITTED, re.MULTILINE) == [".version 6.3", ".target sm_75"]


def assembled(ptxas, ptx, tmp_path):
    (tmp_path / "x.ptx").write_text(ptx)
    words = [ptxas, "-v", "-arch=sm_75", "-o", tmp_path / "x.cubin", tmp_path / "x.ptx"]
    return subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def test_it_assembles_and_keeps_everything_in_registers(tmp_path):
    if not (ptxas := tool("ptxas")):
        return
    result = assembled(ptxas, COMMITTED, tmp_path)
    assert result.returncode == 0, result.stderr
    memory = set(re.findall(r"\d+ bytes stack frame, \d+ bytes spill stores, \d+ bytes spill loads", result.stderr))
    assert memory == {"0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"}


def test_a_version_that_is_too_old_is_red(tmp_path):
    if ptxas := tool("ptxas"):
        assert assembled(ptxas, COMMITTED.replace(".version 6.3", ".version 6.2"), tmp_path).returncode != 0


def test_it_multiplies_and_adds_in_two_steps():
    assert not re.findall(r"^(?:@\S+ )?(?:fma|mad)\S*\.f\d+.*", COMMITTED, re.MULTILINE)
