"""Run on the login host of a made cluster: times hvrun over all hosts, and one plain ssh to each at the same time.

SPDX-License-Identifier: Apache-2.0

Prints a JSON list of [hvrun's seconds, the sshs' seconds], one pair per round.
"""

import argparse
import json
import subprocess
import sys
import time

from rounds import interleave


def seconds_of(commands):
    """Wall time from the first start to the last end of commands that run at the same time and must succeed."""
    begun = time.perf_counter()
    running = [subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) for words in commands]
    codes = [process.wait(timeout=120) for process in running]
    took = time.perf_counter() - begun
    if any(codes):
        sys.exit(f"{commands[0]}: exit codes {codes}")
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hvrun", required=True)
    parser.add_argument("--hosts", required=True, type=lambda text: text.split(","))
    parser.add_argument("--rounds", required=True, type=int)
    parser.add_argument("--option", action="append", default=[], help="of hvrun")
    arguments = parser.parse_args()
    ours = [[arguments.hvrun, *arguments.option, "-H", ",".join(name + ":1" for name in arguments.hosts), "true"]]
    peer = [["ssh", name, "true"] for name in arguments.hosts]
    seconds_of(ours)  # copies the agent, which the first job on a host does once
    seconds_of(peer)
    print(json.dumps(interleave(lambda: seconds_of(ours), lambda: seconds_of(peer), arguments.rounds)))


if __name__ == "__main__":
    main()
