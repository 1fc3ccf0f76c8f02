# SPDX-License-Identifier: Apache-2.0
"""python/horovod-compat beside a real Horovod, however that was installed: it is not built, by whichever of pip's ways."""

import os
import pathlib
import shutil
import subprocess

import pytest

from harness import programs

REFUSAL = "a real Horovod is installed here"
HOOKS = ("build_wheel", "build_editable", "prepare_metadata_for_build_wheel", "prepare_metadata_for_build_editable")
AS_INSTALLED = ("horovod-0.28.1.dist-info/", "horovod-0.19.0-py3.8.egg-info/", "horovod-0.19.0-py3.8.egg-info",
                "horovod-0.19.0-py3.8-linux-x86_64.egg/", "horovod.egg-link")


class Environment:
    """A virtual environment, a home folder beside it, and a copy of the distribution's sources."""

    def __init__(self, folder, *options, overlay=None):
        """overlay: a folder with setuptools for a build of its own; made of the environment's where none is given."""
        self.home, self.sources = folder / "home", folder / "compat"
        self.home.mkdir()
        kept = shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
        shutil.copytree(programs.SOURCE / "python" / "horovod-compat", self.sources, ignore=kept)
        self.run(["/usr/bin/python3", "-m", "venv", *options, folder / "venv"])
        self.python = folder / "venv" / "bin" / "python"
        (self.site,) = (folder / "venv").glob("lib/python3*/site-packages")
        self.users_site = pathlib.Path(self.run([self.python, "-c", "import site; print(site.getusersitepackages())"]).stdout.strip())
        self.overlay = overlay or self._setuptools_apart(folder / "overlay")

    def _setuptools_apart(self, folder):
        folder.mkdir()
        for path in [*self.site.glob("setuptools"), *self.site.glob("pkg_resources"), *self.site.glob("_distutils_hack")]:
            (folder / path.name).symlink_to(path)
        return folder

    def run(self, words, **more):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HVRUN_", "PYTHON", "PIP_"))}
        done = subprocess.run([str(word) for word in words], cwd=self.home, capture_output=True, text=True, timeout=300,
                              check=False, env={**kept, "HOME": str(self.home), **more})
        done.said = done.stdout + done.stderr
        return done

    def call(self, expression):
        """Of the backend, as pip calls it in a build of its own: the environment's folders are not in sys.path."""
        program = f"import os, sys; sys.path = [one for one in sys.path if 'site-packages' not in one]; " \
                  f"sys.path += [{str(self.sources)!r}, {str(self.overlay)!r}]; os.chdir({str(self.sources)!r}); " \
                  f"import refusing_backend; print(refusing_backend.{expression})"
        return self.run([self.python, "-c", program], PYTHONNOUSERSITE="1")

    def install(self, *options):
        return self.run([self.python, "-m", "pip", "install", "--disable-pip-version-check", "--no-deps", *options, self.sources])


def put(folder, name):
    """What an installation of Horovod leaves, a folder where the name ends in /."""
    path = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    path.mkdir() if name.endswith("/") else path.touch()
    return path


def take_away(path):
    path.rmdir() if path.is_dir() else path.unlink()


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return Environment(tmp_path_factory.mktemp("environment"))


@pytest.mark.parametrize("hook", HOOKS)
def test_each_hook_refuses(environment, hook):
    real = put(environment.site, AS_INSTALLED[0])
    done = environment.call(f"{hook}('.')")
    take_away(real)
    assert done.returncode != 0 and REFUSAL in done.said and str(real) in done.said, done.said


@pytest.mark.parametrize("name", AS_INSTALLED)
def test_each_form_of_an_installation_is_seen(environment, name):
    real = put(environment.site, name)
    done = environment.call("build_wheel('.')")
    take_away(real)
    assert done.returncode != 0 and REFUSAL in done.said, done.said


def test_its_own_installation_and_other_names_are_no_reason(environment):
    paths = [put(environment.site, name) for name in ("horovod-0.28.1+hvrun.dist-info/", "horovod_tools-1.0.dist-info/")]
    done = environment.call("real_horovods()")
    for path in paths:
        take_away(path)
    assert done.stdout == "[]\n", done.said


@pytest.mark.parametrize("sees_users_packages", [True, False])
def test_a_users_own_packages_count_where_the_environment_sees_them(sees_users_packages, environment, tmp_path):
    options = ["--system-site-packages"] if sees_users_packages else []
    own = Environment(tmp_path, "--without-pip", *options, overlay=environment.overlay)
    put(own.users_site, AS_INSTALLED[0])
    done = own.call("build_wheel('.')")
    assert (REFUSAL in done.said) == sees_users_packages, done.said


@pytest.mark.parametrize("options", [[], ["--no-build-isolation", "-e"]], ids=["isolated", "editable, not isolated"])
def test_pip_refuses(environment, options):
    real = put(environment.site, AS_INSTALLED[0])
    (real / "METADATA").write_text("Metadata-Version: 2.1\nName: horovod\nVersion: 0.28.1\n")
    done = environment.install(*options)
    shutil.rmtree(real)
    assert done.returncode != 0 and REFUSAL in done.said, done.said
