# SPDX-License-Identifier: Apache-2.0
"""The wheel, as `pip install .` makes it, in environments of its own: without PyTorch, with it, and beside other Pythons."""

import glob
import os
import re
import shutil
import subprocess
import zipfile

import pytest

from harness import programs, torch_environment

SOURCE = programs.SOURCE
# As the build of the tests, so that the compiler's cache has most of it; in a folder of its own.
OPTIONS = ["--config-settings=build-dir=build/wheel", "--config-settings=cmake.build-type=RelWithDebInfo",
           *(f"--config-settings=cmake.define.CMAKE_{language}_FLAGS_RELWITHDEBINFO=-O2 -g1 -DNDEBUG" for language in ("C", "CXX")),
           "--config-settings=cmake.define.HVRUN_WERROR=ON"]
OTHER_PYTHONS = [path for path in sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python")))
                 if tuple(map(int, re.search(r"/3\.(\d+)\.", path).groups())) >= (9,)]


def run(words, cwd, **more):
    """As a user's: nothing of this checkout is in the environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HVRUN_", "PYTHON", "CMAKE_", "SKBUILD"))}
    return subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, timeout=1200, check=False,
                          env={**kept, "HOME": str(cwd), **more})


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    python = torch_environment.interpreter()
    done = run([python, "-m", "pip", "wheel", "--no-deps", "--disable-pip-version-check", "-w", folder, *OPTIONS, SOURCE], folder,
               HOME=os.environ.get("HOME", "/root"))  # which has ccache's folder
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
    (path,) = folder.glob("hvrun-*.whl")
    return path


def environment_of(python, folder, wheel, *options):
    """A fresh environment with the wheel; its python."""
    done = run([python, "-m", "venv", *options, folder], folder.parent)
    assert done.returncode == 0, done.stderr
    own = folder / "bin" / "python"
    done = run([own, "-m", "pip", "install", "--disable-pip-version-check", "--no-index", wheel], folder.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    return own


@pytest.fixture(scope="session")
def plain(wheel, tmp_path_factory):
    return environment_of("/usr/bin/python3", tmp_path_factory.mktemp("plain") / "venv", wheel)


@pytest.fixture(scope="session")
def with_torch(wheel, tmp_path_factory):
    """Beside the PyTorch of the tests' own environment, which it sees by a .pth file."""
    python = environment_of("/usr/bin/python3", tmp_path_factory.mktemp("torch") / "venv", wheel)
    (site,) = python.parents[1].glob("lib/python3*/site-packages")
    (others,) = torch_environment.FOLDER.glob("lib/python3*/site-packages")
    (site / "torch-of-tests.pth").write_text(f"{others}\n")
    return python


def test_one_file_for_every_python_that_holds_all(wheel):
    assert wheel.name.split("-")[2:4] == ["py3", "none"]
    names = zipfile.ZipFile(wheel).namelist()
    for ending in ("scripts/hvrun", "scripts/hvrun-agent", "scripts/hvrun-inventory", "scripts/hvrun-pmix",
                   "hvrun/lib/libhvrun.so.0", "hvrun/lib/libhvrun-nccl.so", "hvrun/lib/libhvrun-openmpi.so", "hvrun/lib/libhvrun-mpich.so",
                   "hvrun/torch/__init__.py", "hvrun/include/hvrun/hvrun.h", "man1/hvrun.1"):
        assert any(name.endswith(ending) for name in names), f"{ending} is not in {names}"
    assert not any(name.endswith((".cc", ".pyc")) for name in names)


def test_it_is_compiled_as_the_build_is_so_that_ccache_has_it(wheel):
    del wheel
    folders = programs.hvrun_folder().parent, SOURCE / "build" / "wheel"
    compilers = [re.findall(r"^CMAKE_(?:C|CXX)_COMPILER:.*=(.*)$", (one / "CMakeCache.txt").read_text(), re.MULTILINE) for one in folders]
    assert len(compilers[0]) == 2 and compilers[0] == compilers[1]
    if shutil.which("ccache"):  # without ./dev's variables, as pip has none
        assert all(f"CCACHE_BASEDIR={SOURCE} " in (one / "CMakeFiles" / "rules.ninja").read_text() for one in folders)


def test_it_imports_and_starts_without_a_framework(plain, tmp_path):
    done = run([plain, "-c", "import hvrun, hvrun.data, hvrun.elastic, sys; assert 'torch' not in sys.modules; print(hvrun.__version__)"],
               tmp_path)
    assert (done.returncode, done.stdout) == (0, "0.1.0\n"), done.stderr
    done = run([plain.parent / "hvrun", "-np", "2", "--no-label", "sh", "-c", "echo $HVRUN_SIZE"], tmp_path)
    assert (done.returncode, done.stdout) == (0, "2\n2\n"), done.stderr
    done = run([plain, "-c", "import hvrun.torch"], tmp_path)
    assert done.returncode == 1 and "No module named 'torch'" in done.stderr


def test_the_doctor_without_a_framework(plain, tmp_path):
    done = run([plain, "-m", "hvrun.doctor"], tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "ok  two ranks" in done.stdout and "PyTorch      not installed" in done.stdout
    assert "no framework to train with. Try: pip install torch" in done.stdout


def test_the_doctor_and_a_training_with_pytorch(with_torch, tmp_path):
    done = run([with_torch, "-m", "hvrun.doctor"], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok  PyTorch" in done.stdout and "Training would work here" in done.stdout
    example = SOURCE / "examples" / "torch" / "digits.py"
    done = run([with_torch.parent / "hvrun", "-np", "2", "--no-label", with_torch, example, "--epochs", "2"], tmp_path)
    assert done.returncode == 0 and "with 2 ranks" in done.stdout, done.stdout + done.stderr


def test_the_doctor_tells_what_is_broken(with_torch, tmp_path):
    done = run([with_torch, "-m", "hvrun.doctor"], tmp_path, HVRUN_LIBRARY="/nowhere/libhvrun.so")
    assert done.returncode == 1
    assert "/nowhere/libhvrun.so (HVRUN_LIBRARY)" in done.stdout and "Training would not work here" in done.stdout


@pytest.mark.one_of("python")
@pytest.mark.parametrize("python", OTHER_PYTHONS, ids=lambda path: re.search(r"3\.\d+", path).group())
def test_the_same_file_beside_another_python(python, wheel, tmp_path):
    own = environment_of(python, tmp_path / "venv", wheel)
    done = run([own, "-m", "hvrun.doctor"], tmp_path)
    assert "ok  two ranks" in done.stdout, done.stdout + done.stderr


def test_horovods_names_and_a_real_horovod(with_torch, tmp_path):
    """The distribution called horovod refuses to take the place of another one of that name."""
    compat = SOURCE / "python" / "horovod-compat"
    install = [with_torch, "-m", "pip", "install", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", compat]
    (site,) = with_torch.parents[1].glob("lib/python3*/site-packages")
    real = site / "horovod-0.28.1.dist-info"
    real.mkdir()
    (real / "METADATA").write_text("Metadata-Version: 2.1\nName: horovod\nVersion: 0.28.1\n")
    done = run([with_torch, "-m", "pip", "install", "--disable-pip-version-check", "setuptools", "wheel"], tmp_path)
    assert done.returncode == 0, done.stderr
    done = run(install, tmp_path)
    assert done.returncode != 0 and "a real Horovod is installed here" in done.stdout + done.stderr, done.stdout + done.stderr
    (real / "METADATA").unlink()
    real.rmdir()
    done = run(install, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    program = SOURCE / "examples" / "torch" / "digits_horovod.py"
    done = run([with_torch.parent / "horovodrun", "-np", "2", with_torch, program, "--epochs", "1"], tmp_path)
    assert done.returncode == 0 and "with 2 ranks" in done.stdout, done.stdout + done.stderr


