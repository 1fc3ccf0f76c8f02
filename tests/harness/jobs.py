# SPDX-License-Identifier: Apache-2.0
"""hvrun's command lines, its errors and its processes, as tests over several hosts speak of them."""

from harness.processes import look_at

USAGE, START, TIMEOUT, LOST = 2, 3, 4, 5  # hvrun's exit codes


def on(*names, ranks_per_host=1):
    """hvrun with that many ranks on each of these hosts."""
    hosts = ",".join(f"{name}:{ranks_per_host}" for name in names)
    return ["hvrun", "-np", str(len(names) * ranks_per_host), "-H", hosts]


def lines_of(result):
    """The lines of stdout, sorted: hosts answer in any order."""
    return sorted(result.out.splitlines())


def expect_hosts(result, *names):
    """'hostname' ran on these hosts, one rank each in this order, and nothing was amiss."""
    assert (result.code, lines_of(result)) == (0, [f"[{rank}] {name}" for rank, name in enumerate(names)]), str(result)


def errors(result):
    """Each error that hvrun told, with its mend: (text, hint)."""
    lines = result.err.splitlines()
    told = [number for number, line in enumerate(lines) if line.startswith("hvrun: error: ")]
    hints = [lines[number + 1] if number + 1 < len(lines) else "" for number in told]
    return [(lines[number][len("hvrun: error: "):], hint[len("  try: "):] if hint.startswith("  try: ") else "")
            for number, hint in zip(told, hints)]


def expect_error(result, code, *parts):
    """Exactly one error, for one cause, that says all these parts, and what to try. Nothing else ran."""
    told = errors(result)
    assert result.code == code and len(told) == 1, str(result)
    text, hint = told[0]
    missing = [part for part in parts if part.lower() not in text.lower()]
    assert not missing, f"the error does not say {missing}: {result}"
    assert hint, f"the error proposes nothing to try: {result}"
    assert result.out == "", f"a rank ran: {result}"
    return text, hint


def agents_and_guards(host, roll_call):
    """hvrun's own processes on a host: (agent, [others]). The agent is whose child a rank is."""
    ranks = roll_call.pick(host.name, "rank")
    assert ranks, f"no rank has signed on {host.name}"
    agent = look_at(ranks[0].parent)
    payload = {process.pid for process in roll_call.alive()}
    others = [process for process in host.newcomers()
              if process.pid not in payload and process.pid != agent.pid and not process.name.startswith("sshd")]
    return agent, others
