"""hvrun script: what it writes, where sites are found, and what the written scripts do without their scheduler.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import re
import signal
import subprocess

import jsonschema
import pytest

from harness.running import Running
from launching import clean_environment, run

SITES = pathlib.Path(__file__).resolve().parents[2] / "hostfiles/sites"
SCHEMA = json.loads((SITES / "site.schema.json").read_text())
SHIPPED = ("generic-lsf", "generic-pbs", "generic-slurm", "jean-zay")
TOLD = "trap 'echo told; exit 4' USR1; echo ready; while :; do sleep 0.05; done"


def script(hvrun, *words, **more):
    result = run(hvrun, "script", *words, **more)
    assert (result.returncode, result.stderr) == (0, b""), result
    return result.stdout.decode()


def refused(hvrun, *words, **more):
    result = run(hvrun, "script", *words, **more)
    assert result.returncode == 2 and result.stdout == b"" and b"  try: " in result.stderr, result
    return result.stderr.decode()


def directives(text):
    return [line.split(" ", 1)[1] for line in text.splitlines() if re.match("#(SBATCH|PBS|BSUB) ", line)]


def test_the_script_for_jean_zay(hvrun):
    text = script(hvrun, "-np", "32", "--site", "jean-zay", "--", "train_binary")
    assert directives(text) == [
        "--job-name=train_binary", "--nodes=8", "--ntasks-per-node=4", "--gres=gpu:4", "--cpus-per-task=10", "--hint=nomultithread",
        "--partition=gpu_p13", "--qos=qos_gpu-t3", "--time=00:10:00", "--no-requeue"]
    assert text.startswith("#!/bin/bash\n") and text.endswith("\nexec hvrun -- train_binary\n")


@pytest.mark.parametrize("partition,cores,gpus,account", [
    ("v100", 10, 4, "@v100"), ("v100-16g", 10, 4, "@v100"), ("v100-32g", 10, 4, "@v100"), ("gpu_p2", 3, 8, "@v100"),
    ("a100", 8, 8, "@a100"), ("h100", 24, 4, "@h100"), ("gpu_p6", 24, 4, "@h100"),
])
def test_a_rank_of_jean_zay_has_its_part_of_the_node(hvrun, partition, cores, gpus, account):
    text = script(hvrun, "--nodes", "2", "--site", "jean-zay", "--partition", partition, "--account", "abc", "train")
    assert {f"--cpus-per-task={cores}", f"--gres=gpu:{gpus}", f"--ntasks-per-node={gpus}", f"--account=abc{account}"} <= {*directives(text)}


@pytest.mark.parametrize("words,said", [
    (["-np", "1024"], "1024 GPUs are more than the 512 of qos_gpu-t3\n  try: -np 512;"),
    (["-np", "8", "--time", "30h"], "--time 30:00:00 is more than the 20:00:00 of qos_gpu-t3\n  try: --qos qos_gpu-t4;"),
    (["-np", "64", "--time", "30h"], "--time 30:00:00 is more than the 20:00:00 of qos_gpu-t3\n  try: --time 20:00:00;"),
    (["-np", "8", "--account", "abc@a100"], "--account abc@a100 is not of this partition's form\n  try: --account abc@v100;"),
    (["-np", "8", "--partition", "v200"], "site jean-zay has no partition v200\n  try: v100? One of v100, v100-16g"),
])
def test_a_limit_that_a_request_breaks_is_named(hvrun, words, said):
    assert said in refused(hvrun, "--site", "jean-zay", *words, "train")


def test_options_of_hvrun_stand_before_the_program_as_they_were_typed(hvrun):
    text = script(hvrun, "-x", "A=b c", "-np2", "--map-by=node", "-v", "--output-dir=logs", "--time", "1h", "./train", "--time", "-np 3")
    assert text.splitlines()[-1] == "exec hvrun -x 'A=b c' --map-by=node -v --output-dir=logs -- ./train --time '-np 3'"
    assert "--ntasks=2" in directives(text) and "--time=01:00:00" in directives(text)
    text = script(hvrun, "--nodes", "1", "--ranks-per-node", "2", "--gpus-per-rank", "2", "train")
    assert text.splitlines()[-1] == "exec hvrun --gpus-per-rank 2 -- train"


@pytest.mark.parametrize("words,said", [
    (["--map-by", "nod", "train"], "--map-by 'nod' is not understood"),
    (["--patition", "x", "train"], "did you mean --partition?"),
    (["--np", "2"], "no program to run"),
    (["train", ":", "other"], "a job script starts one program"),
    (["--version", "train"], "start no program"),
    (["-vn4", "train"], "-np stands together with other letters"),
    (["--time", "02:00", "train"], "--time '02:00' is not understood"),
    (["--signal", "TERM@3", "train"], "--signal 'TERM@3' is not understood"),
    (["--signal", "USR1@99999", "train"], "--signal 'USR1@99999' comes earlier than a scheduler takes it\n  try: at most 65535 seconds"),
    (["--nnodes", "2", "train"], "that is --nodes here"),
    (["--requeue=0", "train"], "--requeue '0' is too small: at least 1 is wanted"),
    (["--job-name", "a\n#SBATCH --b", "train"], "--job-name 'a\\x0a#SBATCH --b' cannot stand in a directive"),
    (["--option", "--b\nrm", "train"], "--option '--b\\x0arm' is not understood"),
    (["--module", "a\nb", "train"], "--module 'a\\x0ab' is not understood"),
    (["--", "train", "a\nb"], "'a\\x0ab' has a line break in it"),
    (["--site", "", "train"], "--site has an empty value"),
    (["--nodes", "2", "--nodes", "3", "train"], "--nodes is given 2 times"),
    (["--list-sites", "train"], "--list-sites and --show-site print something else"),
    (["--site", "nowhere/x.json", "train"], "read site file nowhere/x.json: No such file or directory"),
    (["--site", "jean-zy", "train"], "there is no site jean-zy\n  try: jean-zay? One of generic-lsf"),
    (["train"], "nothing says how many ranks"),
])
def test_a_mistake_is_told(hvrun, words, said):
    assert said in refused(hvrun, *(["-np", "2"] if words != ["train"] and "-vn4" not in words and "--np" not in words else []), *words)


@pytest.mark.parametrize("program, name", [
    (["python", "-u", "runs/train.py", "--lr", "1"], "train"), (["python3", "-m", "pkg.train"], "pkg.train"), (["./train"], "train"),
    (["numactl", "-l", "python", "train.py"], "train"), (["bash", "run.sh"], "run"), (["python", "-c", "pass"], "python")])
@pytest.mark.parametrize("site, directive", [("generic-slurm", "--job-name="), ("generic-pbs", "-N "), ("generic-lsf", "-J ")])
def test_a_job_is_named_after_what_it_runs(hvrun, site, directive, program, name):
    assert directive + name in directives(script(hvrun, "-np", "2", "--site", site, "--", *program))


@pytest.mark.parametrize("site", ["generic-slurm", "generic-pbs", "generic-lsf"])
def test_gpus_that_rounding_adds_are_told_in_the_script_and_besides(hvrun, site):
    told = "7 ranks use 7 of the 8 GPUs of this job: it has 2 nodes with 4 each"
    result = run(hvrun, "script", "--site", site, "-np", "7", "--ranks-per-node", "4", "--gpus-per-rank", "1", "./train")
    assert result.returncode == 0 and result.stderr.decode() == f"hvrun: warning: {told}\n", result
    assert f"\n# {told}.\n" in result.stdout.decode(), result.stdout


def test_a_launcher_in_the_script_gets_the_command_of_hvrun_script_as_hint(hvrun):
    torchrun = ["torchrun", "--nproc-per-node", "4", "train.py"]
    assert "  try: hvrun script --nodes 2 --ranks-per-node 4 python3 train.py; " in refused(hvrun, "--nodes", "2", "--", *torchrun)
    assert "  try: leave out 'hvrun', and put its options" in refused(hvrun, "-np", "8", "--", "hvrun", "-np", "4", "./train")
    assert "  try: hvrun script -np 8 python3 train.py; " in refused(hvrun, "-np", "8", "--", *torchrun)
    assert "torchrun" in script(hvrun, "-np", "8", "--nested", "--", "torchrun", "train.py")
    joined = ["--nodes", "2", "--ranks-per-node", "2", "--", "torchrun", "--nnodes", "2", "--rdzv-endpoint", "a:1", "train.py"]
    assert "2 ranks of each node would run it\n  try: --ranks-per-node 1; " in refused(hvrun, *joined)
    assert "torchrun" in script(hvrun, *joined[:3], "1", *joined[4:])
    assert "torchrun" in script(hvrun, "--nested", *joined)


def test_a_number_behind_requeue_is_not_taken_for_the_program(hvrun):
    text = refused(hvrun, "-np", "4", "--requeue", "3", "--time", "1h", "--", "./train")
    assert "--requeue 3 is two words" in text and "try: --requeue=3" in text


@pytest.mark.parametrize("words", [["-H", "a:2"], ["--hostfile", "/dev/null"], ["--dry-run=offline"]], ids=" ".join)
def test_what_is_not_for_a_job_is_refused(hvrun, words):
    assert "leave it out" in refused(hvrun, "-np", "4", *words, "--", "./train")


def test_a_file_is_written_once(hvrun, tmp_path):
    file = tmp_path / "job.slurm"
    result = run(hvrun, "script", "-np", "2", "-o", str(file), "train")
    assert (result.returncode, result.stdout) == (0, b"") and f"submit it by: sbatch {file}".encode() in result.stderr
    first = file.read_text()
    assert first == script(hvrun, "-np", "2", "train") and os.access(file, os.X_OK)
    assert "File exists\n  try: --force overwrites it" in refused(hvrun, "-np", "3", "-o", str(file), "train")
    assert file.read_text() == first
    assert run(hvrun, "script", "-np", "3", "--force", "-o", str(file), "train").returncode == 0
    assert file.read_text() == script(hvrun, "-np", "3", "train")
    assert "No such file" in refused(hvrun, "-np", "2", "-o", str(tmp_path / "no/job"), "train")
    assert b"bsub < " in run(hvrun, "script", "-np", "2", "--site", "generic-lsf", "--force", "-o", str(file), "train").stderr


def test_help_names_the_subcommand_and_the_other_way_round(hvrun):
    assert b"hvrun script [options] [--] program" in run(hvrun, "--help").stdout
    for words in (["--help"], ["-h"]):
        text = script(hvrun, *words)
        assert "--requeue=N  " in text and "hvrun --help" in text


# Sites: where they are found, and that schema and program say the same.

def site_text(name="mine", **members):
    return json.dumps({"name": name, "scheduler": "slurm", "partitions": [{"name": "p", "queue": f"of-{name}"}], **members})


def test_sites_are_looked_for_from_the_nearest_to_those_that_ship(hvrun, tmp_path):
    own = tmp_path / "config/hvrun/sites"
    own.mkdir(parents=True)
    (own / "jean-zay.json").write_text(site_text("in-config"))
    (own / "broken.json").write_text("{")
    words, where = ["-np", "1", "--site", "jean-zay", "true"], {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    assert "--partition=gpu_p13" in directives(script(hvrun, *words))
    assert "--partition=of-in-config" in directives(script(hvrun, *words, **where))
    assert "--partition=of-in-config" in directives(script(hvrun, "-np", "1", "--site", str(own / "jean-zay.json"), "true"))
    (tmp_path / "jean-zay.json").write_text(site_text("here"))
    assert "--partition=of-here" in directives(script(hvrun, *words, cwd=str(tmp_path), **where))
    listed = script(hvrun, "--list-sites", **where).splitlines()
    assert {line.split()[0] for line in listed} == {*SHIPPED, "broken"}
    columns = [re.match(r"\S+ +", line).end() for line in listed]
    schedulers = {re.match(r"\S+ +(\S+ +)", line).end() for line in listed}
    assert len({*columns}) == 1 and len(schedulers) == 1, listed
    assert len([line for line in listed if "MALFORMED: read site file " in line]) == 1
    (own / "broken.json").unlink()
    (tmp_path / "config").rename(tmp_path / ".config")
    assert "--partition=of-in-config" in directives(script(hvrun, *words, HOME=str(tmp_path)))


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_site_is_shown_as_it_is_and_obeys_the_schema(hvrun, name):
    text = (SITES / f"{name}.json").read_text()
    assert script(hvrun, "--show-site", name) == text
    jsonschema.validate(json.loads(text), SCHEMA)
    assert directives(script(hvrun, "--site", name, "-np", "4", "train"))


def test_these_sites_ship():
    assert {file.stem for file in SITES.glob("*.json")} == {*SHIPPED, "site.schema"}
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def known_names(hvrun, tmp_path, site):
    """The members that hvrun knows where 'site' has an unknown one."""
    file = tmp_path / "unknown.json"
    file.write_text(json.dumps(site))
    return {*re.search(r"try: expected one of ([^;]*);", refused(hvrun, "--show-site", str(file)))[1].split(", ")}


def test_the_schema_has_the_members_that_hvrun_reads(hvrun, tmp_path):
    partition = {"name": "p"}
    base = {"name": "s", "scheduler": "slurm", "partitions": [partition]}
    members = SCHEMA["properties"]
    of = lambda array: {*members[array]["items"]["properties"]}
    assert known_names(hvrun, tmp_path, {**base, "zzzzzzzz": 1}) == {*members}
    assert known_names(hvrun, tmp_path, {**base, "partitions": [{**partition, "zzzzzzzz": 1}]}) == of("partitions")
    assert known_names(hvrun, tmp_path, {**base, "qos": [{"name": "q", "zzzzzzzz": 1}]}) == of("qos")


EVERYTHING = {
    "$schema": "x", "name": "s", "scheduler": "slurm", "description": "d", "documentation": "u", "hint": "h", "gpu_request": "gpu:{gpus}",
    "account_required": True, "any_partition": True, "default_time": "2h", "options": ["--a"], "modules": ["m"],
    "qos": [{"name": "q", "max_time": "1d", "max_nodes": 1, "max_gpus": 1, "max_cores": 1}],
    "partitions": [{"name": "p", "description": "d", "queue": "q", "constraint": "c", "account_suffix": "@p", "options": ["-b"],
                    "modules": ["m"], "qos": ["q"], "cores": 1, "threads_per_core": 1, "gpus": 0, "gpu_model": "g", "memory_gb": 1,
                    "max_nodes": 1, "max_time": "02:00:00", "exclusive": False}]}
WRONG = {"text": 3, "number": "3", "negative": -1, "fraction": 1.5, "empty": "", "list": [[]], "none": None, "two words": "a b",
         "line": "a\nb", "quote": "a\"b"}


def with_value(site, path, value):
    """A copy of the site with another value at that path of names and numbers."""
    site = json.loads(json.dumps(site))
    inner = site
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return site


def paths(value, before=()):
    for key, inner in (value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()):
        yield (*before, key)
        yield from paths(inner, (*before, key))


def test_schema_and_hvrun_take_and_refuse_the_same(hvrun, tmp_path):
    """Each member of a site that has them all, with each value that may be wrong there."""
    jsonschema.validate(EVERYTHING, SCHEMA)
    validator = jsonschema.Draft202012Validator(SCHEMA)
    of_hvrun, of_schema = {}, {}
    for path in paths(EVERYTHING):
        for name, value in {**WRONG, "as it is": None}.items():
            site = EVERYTHING if name == "as it is" else with_value(EVERYTHING, path, value)
            if name != "as it is" and path[-2:] == ("qos", 0) and isinstance(value, str) and value:
                continue  # no such QoS, which no schema says
            if path == ("qos", 0, "name"):
                continue
            file = tmp_path / "site.json"
            file.write_text(json.dumps(site))
            of_hvrun[path, name] = run(hvrun, "script", "--show-site", str(file)).returncode == 0
            of_schema[path, name] = validator.is_valid(site)
    assert len(of_hvrun) > 300 and {key for key in of_hvrun if of_hvrun[key] != of_schema[key]} == set()


# The scripts as the shell sees them.

LAYOUT = ["-np", "2", "--nodes", "2"]
GUARDS = [[], ["--signal", "USR1@60"], ["--requeue=3", "--output-dir", "my logs"], ["--signal", "USR2@60", "--requeue=3"]]


@pytest.mark.parametrize("site", ["generic-slurm", "generic-pbs", "generic-lsf", "jean-zay"])
@pytest.mark.parametrize("guard", GUARDS, ids=" ".join)
def test_bash_and_shellcheck_understand_what_is_written(hvrun, tmp_path, site, guard):
    file = tmp_path / "job"
    file.write_text(script(hvrun, "--site", site, "--time", "2h", "--module", "a b", *LAYOUT, *guard, "--", "train", "it's $HOME"))
    subprocess.run(["bash", "-n", file], check=True)
    # Functions that a trap calls look unreachable to it; a module's blank is quoted, $HOME is the program's.
    checked = subprocess.run(["shellcheck", "-e", "SC2317,SC2016", file], capture_output=True, text=True)
    assert (checked.returncode, checked.stdout) == (0, "")


class Job:
    """A written script in bash, with hvrun and stand-ins for a scheduler's programs in its PATH."""

    def __init__(self, hvrun, folder, *words, **environment):
        self.folder = folder
        self.calls = folder / "calls"
        (folder / "nodes").write_text("a\nb\n")
        rsh = folder / "rsh"
        rsh.write_text("#!/bin/sh\nshift; exec sh -c \"$*\"\n")
        for name in ("scontrol", "qrerun", "brequeue"):
            (folder / name).write_text(f"#!/bin/sh\necho {name} \"$@\" >>{self.calls}\n")
        for name in ("rsh", "scontrol", "qrerun", "brequeue"):
            (folder / name).chmod(0o755)
        self.file = folder / "job"
        self.file.write_text(script(hvrun, *LAYOUT, "--oversubscribe", "--rsh", str(rsh), *words))
        path = f"{folder}:{pathlib.Path(hvrun).parent}:/usr/local/bin:/usr/bin:/bin"
        self.environment = clean_environment(PATH=path, HOME=str(folder), **environment)

    def start(self, **more):
        return Running(["bash", str(self.file)], env={**self.environment, **more}, cwd=str(self.folder))

    def called(self):
        """But for what hvrun itself asks Slurm."""
        calls = self.calls.read_text().splitlines() if self.calls.exists() else []
        return [call for call in calls if call != "scontrol show config"]


def slurm_job(hvrun, folder, *words):
    return Job(hvrun, folder, "--spawner", "ssh", *words, SLURM_JOB_ID="7", SLURM_JOB_NODELIST="a,b", SLURM_NTASKS_PER_NODE="1")


def pbs_job(hvrun, folder, *words):
    return Job(hvrun, folder, "--site", "generic-pbs", *words, PBS_JOBID="7.server", PBS_NODEFILE=str(folder / "nodes"))


def lsf_job(hvrun, folder, *words):
    return Job(hvrun, folder, "--site", "generic-lsf", *words, LSB_JOBID="7", LSB_DJOB_HOSTFILE=str(folder / "nodes"))


@pytest.mark.parametrize("job_of", [slurm_job, pbs_job, lsf_job])
def test_the_ranks_run_on_the_hosts_of_the_scheduler(hvrun, tmp_path, job_of):
    job = job_of(hvrun, tmp_path, "--", "sh", "-c", "echo $HVRUN_CROSS_RANK $HVRUN_SIZE; exit $((RANK * 3))")
    with job.start() as running:
        result = running.wait(60)
    assert (result.code, sorted(result.out.splitlines())) == (3, ["[0] 0 2", "[1] 1 2"]), str(result)


@pytest.mark.parametrize("job_of,call", [(slurm_job, "scontrol requeue 7"), (lsf_job, "brequeue 7")])
def test_a_job_that_its_scheduler_warns_tells_its_ranks_and_comes_back(hvrun, tmp_path, job_of, call):
    job = job_of(hvrun, tmp_path, "--time", "1h", "--signal", "USR1@60", "--requeue=2", "--", "sh", "-c", TOLD)
    with job.start() as running:
        running.wait_for_output("[0] ready", 30)
        running.wait_for_output("[1] ready", 30)
        running.process.send_signal(signal.SIGUSR1)
        result = running.wait(30)
    assert (result.code, job.called()) == (4, [call]), str(result)
    assert "[0] told" in result.out and "[1] told" in result.out and "put back into the queue" in result.err, str(result)


def test_pbs_signals_nobody_so_the_script_goes_by_its_clock_and_counts(hvrun, tmp_path):
    words = ["--time", "4s", "--signal", "USR1@3", "--requeue=2", "--output-dir=my logs"]
    job = pbs_job(hvrun, tmp_path, *words, "--", "sh", "-c", TOLD)
    counter = tmp_path / ".hvrun-restarts.7.server"
    for calls, count in ((1, "1\n"), (2, "2\n"), (2, None)):
        with job.start() as running:
            result = running.wait(30)
        assert (result.code, len(job.called()), counter.read_text() if counter.exists() else None) == (4, calls, count), str(result)
        assert "told" in result.out, str(result)
    assert "it has come back 2 times" in result.err
    assert sorted(run.name for run in (tmp_path / "my logs").iterdir()) == ["run.0", "run.1", "run.2"]


@pytest.mark.parametrize("job_of", [pbs_job, lsf_job])
def test_a_run_after_a_hosts_failure_counts_and_has_its_own_directory(hvrun, tmp_path, job_of):
    """The scheduler itself begins it: nothing in the first run could count it in advance."""
    rank = f"echo ready; [ -e {tmp_path}/again ] || exec sleep 1000"
    job = job_of(hvrun, tmp_path, "--time", "1h", "--requeue=2", "--output-dir=logs", "--", "sh", "-c", rank)
    with job.start() as running:
        running.wait_for_output("[1] ready", 30)
        os.killpg(running.pid, signal.SIGKILL)
    (tmp_path / "again").touch()
    with job.start() as running:
        result = running.wait(30)
    assert (result.code, job.called()) == (0, []), str(result)
    assert sorted(run.name for run in (tmp_path / "logs").iterdir()) == ["run.0", "run.1"]
    assert not list(tmp_path.glob(".hvrun-restarts.*"))


def test_a_job_whose_runs_cannot_be_counted_does_not_come_back(hvrun, tmp_path):
    """It could come back without end."""
    job = pbs_job(hvrun, tmp_path, "--time", "4s", "--signal", "USR1@3", "--requeue=2", "--", "sh", "-c", TOLD)
    (tmp_path / ".hvrun-restarts.7.server").mkdir()
    with job.start() as running:
        result = running.wait(30)
    assert (result.code, job.called()) == (4, []) and ".hvrun-restarts.7.server could not be written" in result.err, str(result)


def test_a_job_of_pbs_runs_where_it_was_submitted(hvrun, tmp_path):
    (tmp_path / "submitted here").mkdir()
    job = pbs_job(hvrun, tmp_path, "--no-label", "pwd")
    with job.start(PBS_O_WORKDIR=str(tmp_path / "submitted here")) as running:
        assert set(running.wait(30).out.splitlines()) == {str(tmp_path / "submitted here")}


def test_a_clock_ends_with_the_job(hvrun, tmp_path):
    """Its sleep would be left behind; a number of seconds that is this test's alone tells which it is."""
    seconds = 10000 + os.getpid()
    job = pbs_job(hvrun, tmp_path, "--time", f"{seconds + 60}s", "--signal", "USR1@60", "--", "true")
    done = subprocess.run(["bash", str(job.file)], env=job.environment, capture_output=True, cwd=tmp_path, timeout=30)
    assert done.returncode == 0, done
    assert not subprocess.run(["pgrep", "-f", f"^sleep {seconds}$"], capture_output=True).stdout


def test_slurm_says_itself_how_often_a_job_has_come_back(hvrun, tmp_path):
    job = slurm_job(hvrun, tmp_path, "--time", "1h", "--requeue=2", "--output-dir", "logs", "--", "sh", "-c", "echo ready; sleep 100")
    with job.start(SLURM_RESTART_COUNT="2") as running:
        running.wait_for_output("[1] ready", 30)
        running.process.send_signal(signal.SIGUSR1)
        result = running.wait(30)
    assert (result.code, job.called()) == (143, []) and "it has come back 2 times" in result.err, str(result)
    assert [run.name for run in (tmp_path / "logs").iterdir()] == ["run.2"]


@pytest.mark.parametrize("job_of,minute,reason,calls", [
    (slurm_job, 60, "None", []), (slurm_job, 60, "TimeLimit", ["scontrol requeue 7"]),
    (lsf_job, 60, "", []), (lsf_job, 3, "", ["brequeue 7"])])
def test_sigterm_brings_a_job_back_only_at_the_time_limit(hvrun, tmp_path, job_of, minute, reason, calls):
    """Else it is a scancel. Slurm says which; elsewhere the clock tells. Either goes to hvrun, too."""
    rank = "trap 'sleep 2; echo late' USR1; echo ready; while :; do sleep 0.05; done"  # sleep-ok: a rank that works
    job = job_of(hvrun, tmp_path, "--time", "1h", "--signal", "USR1@45", "--requeue", "--", "sh", "-c", rank)
    if job_of is lsf_job:  # LSF warns whole minutes before; a shorter one saves the wait
        text = job.file.read_text()
        assert '#BSUB -wt "00:01"' in text and "-ge 58 ]" in text, text
        job.file.write_text(text.replace("-ge 58 ]", f"-ge {minute - 2} ]"))
    (tmp_path / "squeue").write_text(f"#!/bin/sh\ntest \"$*\" = '-h -j 7 -o %r' && echo {reason}\n")
    (tmp_path / "squeue").chmod(0o755)
    with job.start() as running:
        for number in (0, 1):  # neither lives through the signal before its trap
            running.wait_for_output(f"[{number}] ready", 30)
        running.process.send_signal(signal.SIGUSR1)
        running.wait_for_output("[1] late", 30)
        running.process.send_signal(signal.SIGTERM)
        subprocess.run(["pkill", "-TERM", "-P", str(running.pid), "-x", "hvrun"], check=True)
        result = running.wait(30)
    assert (result.code, job.called()) == (143, calls), str(result)


@pytest.mark.parametrize("rank,code", [("exit 9", 9), ("exit 0", 0)])
def test_a_job_that_nobody_warned_does_not_come_back(hvrun, tmp_path, rank, code):
    job = slurm_job(hvrun, tmp_path, "--time", "1h", "--requeue", "--", "sh", "-c", rank)
    with job.start() as running:
        assert (running.wait(30).code, job.called()) == (code, [])


def test_a_scheduler_that_refuses_is_told(hvrun, tmp_path):
    job = slurm_job(hvrun, tmp_path, "--time", "1h", "--requeue", "--", "sh", "-c", "echo ready; sleep 100")
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho no >&2; exit 1\n")
    with job.start() as running:
        running.wait_for_output("[1] ready", 30)
        running.process.send_signal(signal.SIGUSR1)
        result = running.wait(30)
    assert result.code == 143 and "could not be put back into the queue" in result.err, str(result)
