#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hosts on this machine, each with its own network, processes, files and sshd. Needs root.

    hosts.py run --hosts 3 -- command      make node1..node3, run the command on their login host, end them
    hosts.py up --hosts 3                  make them, print the folder that stands for them
    hosts.py exec [--in FOLDER] [--host NAME] [--user NAME] -- command
    hosts.py down [FOLDER]

On the login host PATH begins with hvrun's folder (HVRUN_BIN_DIR, else this build's), and 'ssh node1' just works.
"""

import argparse
import os
import pathlib
import signal
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness import cluster  # noqa: E402

CANNOT = 2


def numbered(count):
    return [f"node{number}" for number in range(1, count + 1)]


def newest():
    """The folder of the cluster made last."""
    folders = sorted(pathlib.Path(tempfile.gettempdir()).glob(cluster.PREFIX + "*/state.json"), key=os.path.getmtime)
    if not folders:
        sys.exit("hosts.py: no hosts are up\n  try: hosts.py up")
    return folders[-1].parent


def made(options, **more):
    return cluster.Cluster(numbered(options.hosts), cgroup=options.cgroup, **more)


def run_there(host, options):
    """The command's exit code; Ctrl-C and its like are the command's affair."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    kept = {name: os.environ[name] for name in ("TERM", "COLUMNS", "LINES") if name in os.environ}
    started = host.start(options.command, user=options.user, cwd=options.wdir, env=kept, start_new_session=False,
                         stdin=sys.stdin, stdout=sys.stdout, stderr=sys.stderr)
    code = started.process.wait()
    return code if code >= 0 else 128 - code


def run(options):
    with made(options) as hosts:
        return run_there(hosts.login, options)


def up(options):
    print(made(options, follow=False).up().folder)


def execute(options):
    return run_there(cluster.Cluster.opened(options.folder or newest())[options.host], options)


def down(options):
    cluster.Cluster.opened(options.folder or newest()).down()


def parsed(words):
    parser = argparse.ArgumentParser(prog="hosts.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    count = argparse.ArgumentParser(add_help=False)
    count.add_argument("--hosts", type=int, default=3, metavar="N")
    count.add_argument("--cgroup", action="store_true", help="each host has a cgroup v2 subtree of its own")
    what = argparse.ArgumentParser(add_help=False)
    what.add_argument("--user", default="root", choices=cluster.USERS)
    what.add_argument("--wdir", help="folder to start in (default: the user's home)")
    what.add_argument("command", nargs="+", help="begins in a fresh login's environment: env NAME=VALUE command sets more")
    commands.add_parser("run", parents=[count, what]).set_defaults(action=run)
    commands.add_parser("up", parents=[count]).set_defaults(action=up)
    inside = commands.add_parser("exec", parents=[what])
    inside.add_argument("--in", dest="folder", metavar="FOLDER")
    inside.add_argument("--host", default=cluster.LOGIN)
    inside.set_defaults(action=execute)
    ending = commands.add_parser("down")
    ending.add_argument("folder", nargs="?")
    ending.set_defaults(action=down)
    return parser.parse_args(words)


def main(words):
    options = parsed(words)
    if reason := cluster.why_not():
        print(f"hosts.py: {reason}", file=sys.stderr)
        return CANNOT
    return options.action(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
