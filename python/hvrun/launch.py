# SPDX-License-Identifier: Apache-2.0
"""hvrun.run(function, np=2): a function in every rank of a job, from inside Python, also from a notebook.

hvrun starts main() of run_task.py in each rank. The function goes to rank 0 by standard input and from there to the others;
the results come back from rank 0 through a pipe of their own (_results.py), whose reading end only this process has. They stay
bytes until all have come and the job has ended well; then each is loaded by itself.
"""

import base64
import codecs
import json
import os
import pickle
import select
import subprocess
import sys
import tempfile
import threading
import time

from hvrun._programs import find_program
from hvrun._results import read_results

try:
    import cloudpickle as _pickler
except ImportError:
    _pickler = pickle

_MOST_LINES, _MOST_OF_A_LINE = 10, 300  # of a rank's, in an exception
_CHUNK, _MOST_UNFINISHED = 1 << 16, 1 << 20  # bytes of a read, and of a line that are kept until its rest comes
_REST_SECONDS = 0.05  # the longest wait for that rest
# Python puts the working directory first on the path of -c, and of -m; ranks import from where the caller does (_python_path).
_TASK = "import sys; sys.path[:1] == [''] and sys.path.pop(0); from hvrun.run_task import main; main()"
_NOT_YET = ("min_num_proc", "max_num_proc", "slots", "reset_limit", "cooldown_range", "host_discovery_script")


def run(func, args=(), kwargs=None, num_proc=None, min_num_proc=None, max_num_proc=None, slots=None, reset_limit=None,
        cooldown_range=None, hosts=None, hostfile=None, host_discovery_script=None, start_timeout=None, ssh_port=None,
        ssh_identity_file=None, disable_cache=None, output_filename=None, verbose=None, use_gloo=None, use_mpi=None,
        mpi_args=None, network_interface=None, network_interfaces=None, executable=None, np=None, min_np=None, max_np=None,
        env=None):
    """Calls func(*args, **kwargs) in every rank, and returns what it returned there, a list by rank.

    np, num_proc: how many ranks; by default one per slot. hosts: "a:2,b:2"; hostfile: a file; without either, this machine.
    start_timeout: seconds that a host has to answer. output_filename: a folder for each rank's output. executable: the Python
    of the ranks, on every host. network_interfaces: names; the ranks use these only. use_mpi: MPI moves the data, as with
    hvrun --mpi. env: more variables for the ranks. The rest is accepted for Horovod's sake, or refused with the reason.

    The ranks' output comes to this process's streams. What is not in an installed module travels by cloudpickle. RuntimeError
    where the job fails, with what the rank said last that failed first, such as its exception; all of it, and what hvrun says,
    stands on standard error. RuntimeError, too, where a result does not come, or cannot be loaded here; it names the rank.
    """
    del disable_cache, use_gloo
    wishes = dict(min_num_proc=min_num_proc or min_np, max_num_proc=max_num_proc or max_np, slots=slots, reset_limit=reset_limit,
                  cooldown_range=cooldown_range, host_discovery_script=host_discovery_script)
    for name in _NOT_YET:
        if wishes[name] is not None:
            raise NotImplementedError(f"hvrun.run: {name} is for jobs that grow and shrink, which hvrun does not start yet")
    if mpi_args:
        raise NotImplementedError("hvrun.run: hvrun starts the ranks, not mpirun, which mpi_args is for; set Open MPI's parameters by env, "
                                  "as in env={'OMPI_MCA_btl': '^openib'}")
    if hosts and hostfile:
        raise ValueError("hvrun.run: hosts and hostfile both name hosts; give one of them")
    network_interfaces = network_interfaces or network_interface
    if isinstance(network_interfaces, str):
        network_interfaces = network_interfaces.split(",")
    np = num_proc if np is None else np
    options = _options(np, hosts, hostfile, start_timeout, ssh_port, ssh_identity_file, output_filename, verbose)
    words = [*options, *(["--mpi"] if use_mpi else []), "--stdin", executable or sys.executable, "-c", _TASK]
    variables = {**os.environ, **{name: str(value) for name, value in (env or {}).items()}, "PYTHONPATH": _python_path()}
    if network_interfaces:
        variables["HVRUN_INTERFACES"] = ",".join(network_interfaces)
    packed = _packed(func, args, kwargs or {})
    with tempfile.TemporaryDirectory() as folder:
        summary = os.path.join(folder, "summary.json")
        return _load(_results([_hvrun(), "--summary", summary, *words], variables, packed, summary))


def _hvrun():
    path = find_program("hvrun")
    if path is None:
        raise RuntimeError("hvrun.run: the program hvrun is neither beside this python nor on PATH; pip install hvrun here")
    return path


def _options(np, hosts, hostfile, start_timeout, ssh_port, identity, output, verbose):
    stated = [("-np", np), ("-H", hosts), ("--hostfile", hostfile), ("--start-timeout", start_timeout), ("-p", ssh_port),
              ("-i", identity), ("--output-dir", output)]
    words = [word for option, value in stated if value is not None for word in (option, str(value))]
    return words + (["-v"] if verbose else [])


def _python_path():
    """What this process imports from, so that the ranks find the same modules."""
    return os.pathsep.join(os.path.abspath(one) for one in sys.path if one == "" or os.path.isdir(one))


def _packed(func, args, kwargs):
    if _pickler is pickle and getattr(func, "__module__", None) == "__main__":  # pickle would send its name alone
        raise ValueError(f"hvrun.run: {getattr(func, '__name__', func)} is a function of this script or notebook, which ranks cannot "
                         "import; pip install cloudpickle, which can send it, or move it into a module")
    try:
        return base64.b64encode(_pickler.dumps((func, args, kwargs))) + b"\n"
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        hint = "" if _pickler is not pickle else "; pip install cloudpickle, which can send functions of a script or a notebook"
        raise ValueError(f"hvrun.run: the function or its arguments cannot be sent to the ranks: {error}{hint}") from error


class _ResultReader(threading.Thread):
    """Reads the results while the job runs. Whatever happens, it closes the pipe: hvrun must not wait for a reader that is not there."""

    def __init__(self, pipe):
        super().__init__()
        self._pipe = pipe
        self.results, self.error = None, None

    def run(self):
        with self._pipe:
            try:
                self.results = read_results(self._pipe)
            except Exception as error:  # MemoryError, too
                self.error = error


def _started(words, variables, packed):
    """hvrun, and who reads the results that it passes on."""
    ours, hvruns = os.pipe()
    reader = _ResultReader(os.fdopen(ours, "rb", buffering=0))
    try:
        with tempfile.TemporaryFile() as given:
            given.write(packed)
            given.seek(0)
            process = subprocess.Popen([words[0], "--result-fd", str(hvruns), *words[1:]], stdin=given, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, env=variables, pass_fds=(hvruns,))
    finally:
        os.close(hvruns)
    reader.start()
    return process, reader


def _results(words, variables, packed, summary):
    """What the ranks returned, as bytes by rank."""
    process, reader = _started(words, variables, packed)
    errors = threading.Thread(target=_pass_on, args=(process.stderr, sys.stderr))  # a notebook's streams are no descriptors
    errors.start()
    try:
        _pass_on(process.stdout, sys.stdout)
        code = process.wait()
    except BaseException:  # Ctrl-C: hvrun ends the ranks
        process.terminate()
        process.wait()
        raise
    finally:
        errors.join()
        reader.join()
        process.stdout.close()
        process.stderr.close()
    # Where the job has failed, the end of the stream is no news; that it could not be read is, and may be why.
    if code == 0 and isinstance(reader.error, EOFError):
        raise RuntimeError("hvrun.run: the ranks ended with exit code 0 before all had returned a result; the function must return, "
                           "not end its process (os._exit)") from reader.error
    if reader.error is not None and not isinstance(reader.error, EOFError):
        raise RuntimeError(f"hvrun.run: read what the ranks returned: {reader.error or type(reader.error).__name__}") from reader.error
    if code != 0:
        raise RuntimeError(f"hvrun.run: the job ended with exit code {code}{_reason(summary)}")
    return reader.results


def _load(results):
    """The objects, each made of its own bytes, which it replaces: no two copies of all of them."""
    for rank, data in enumerate(results):
        try:
            results[rank] = pickle.loads(data)
        except Exception as error:
            raise RuntimeError(f"hvrun.run: what rank {rank} returned cannot be loaded here: {type(error).__name__}: {error}") from error
    return results


def _reason(summary):
    """Of that end, by hvrun's own file: why nothing was started, or what the rank said last that failed first."""
    try:
        with open(summary, encoding="utf-8") as file:
            told = json.load(file)
    except (OSError, ValueError):  # a wrong option: there was no job
        return "; standard error has what hvrun says of it"
    cause = told["cause"]
    if cause is None:
        return f": {told['error']}" if "error" in told else "; standard error has what hvrun says of it"
    if "rank" not in cause:
        return f": host {cause['host']}: {cause['reason']}"
    lines = "".join(f"\n    {line[:_MOST_OF_A_LINE]}" for line in _last_words(cause["last_lines"]))
    return f": rank {cause['rank']} on host {cause['host']}: {cause['reason']}" + (f"; its last lines:{lines}" if lines else "")


def _last_words(lines):
    """What stands behind a traceback's frames, which are indented: the exception."""
    frames = [number for number, line in enumerate(lines) if line.startswith("  ")]
    behind = lines[frames[-1] + 1:] if frames else lines
    return (behind or lines)[-_MOST_LINES:]


def _pass_on(pipe, stream):
    """Writes whole lines as they come, and the beginning of one soon after it came: hvrun has already waited for its rest."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a character may come in two parts
    coming = select.poll()  # select.select() refuses descriptors from 1024 on
    coming.register(pipe, select.POLLIN)
    unfinished, due = b"", 0

    def write(data, final=False):
        stream.write(decoder.decode(data, final))
        stream.flush()

    while True:
        waits = 1000 * max(0, due - time.monotonic())
        if unfinished and (len(unfinished) > _MOST_UNFINISHED or not coming.poll(waits)):
            write(unfinished)
            unfinished = b""
        chunk = os.read(pipe.fileno(), _CHUNK)
        if not chunk:
            return write(unfinished, final=True)
        if not unfinished or b"\n" in chunk:
            due = time.monotonic() + _REST_SECONDS
        lines, newline, unfinished = (unfinished + chunk).rpartition(b"\n")
        if newline:
            write(lines + newline)
