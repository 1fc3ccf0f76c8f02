# SPDX-License-Identifier: Apache-2.0
"""hvrun.run(function, np=2): a function in every rank of a job, from inside Python, also from a notebook.

hvrun starts `python -m hvrun.run_task` in each rank. The function goes to rank 0 by standard input and from there to the others;
the results come back as lines of rank 0's output that begin with a mark of this run, and are taken out of it.
"""

import base64
import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import uuid

from hvrun._programs import find_program

try:
    import cloudpickle as _pickler
except ImportError:
    _pickler = pickle

_MOST_LINES, _MOST_OF_A_LINE = 10, 300  # of a rank's, in an exception
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
    stands on standard error.
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
    if isinstance(network_interface, str):
        network_interfaces = network_interface.split(",")
    mark = f"hvrun-result-{uuid.uuid4().hex}"
    options = _options(np or num_proc, hosts, hostfile, start_timeout, ssh_port, ssh_identity_file, output_filename, verbose)
    words = [*options, *(["--mpi"] if use_mpi else []), "--stdin", executable or sys.executable, "-m", "hvrun.run_task", mark]
    variables = {**os.environ, **(env or {}), "PYTHONPATH": _python_path()}
    if network_interfaces:
        variables["HVRUN_INTERFACES"] = ",".join(network_interfaces)
    packed = _packed(func, args, kwargs or {})
    with tempfile.TemporaryDirectory() as folder:
        summary = os.path.join(folder, "summary.json")
        return _results([_hvrun(), "--summary", summary, *words], variables, packed, mark, summary)


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
    return os.pathsep.join(os.path.abspath(one) for one in ["", *sys.path] if one == "" or os.path.isdir(one))


def _packed(func, args, kwargs):
    if _pickler is pickle and getattr(func, "__module__", None) == "__main__":  # pickle would send its name alone
        raise ValueError(f"hvrun.run: {getattr(func, '__name__', func)} is a function of this script or notebook, which ranks cannot "
                         "import; pip install cloudpickle, which can send it, or move it into a module")
    try:
        return base64.b64encode(_pickler.dumps((func, args, kwargs))) + b"\n"
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        hint = "" if _pickler is not pickle else "; pip install cloudpickle, which can send functions of a script or a notebook"
        raise ValueError(f"hvrun.run: the function or its arguments cannot be sent to the ranks: {error}{hint}") from error


def _results(words, variables, packed, mark, summary):
    with tempfile.TemporaryFile() as given:
        given.write(packed)
        given.seek(0)
        process = subprocess.Popen(words, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=variables)
    told = threading.Thread(target=_pass_on, args=(process.stderr, sys.stderr))  # a notebook's streams are no descriptors
    told.start()
    try:
        pieces = _take_out(process.stdout, mark.encode())
        code = process.wait()
    except BaseException:  # Ctrl-C: hvrun ends the ranks
        process.terminate()
        process.wait()
        raise
    finally:
        told.join()
        process.stdout.close()
        process.stderr.close()
    if code != 0:
        raise RuntimeError(f"hvrun.run: the job ended with exit code {code}{_reason(summary)}")
    return pickle.loads(base64.b64decode(b"".join(pieces)))


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


def _pass_on(lines, stream):
    for line in lines:
        stream.write(line.decode(errors="replace"))
        stream.flush()


def _take_out(lines, mark):
    """The pieces of the results; what else there is is the ranks' output."""
    pieces = []
    for line in lines:
        before, found, piece = line.partition(mark)
        if found:
            pieces.append(piece.strip())
        else:
            sys.stdout.write(line.decode(errors="replace"))
            sys.stdout.flush()
    return pieces
