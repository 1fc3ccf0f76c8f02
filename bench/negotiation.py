"""Rows of the negotiation alone: all ranks of a large job in one process (negotiation.cc). SPDX-License-Identifier: Apache-2.0

Bytes are counted, the same in every run: one run each decides. Times, and messages at each level, are told for information, of a
process that has all ranks to itself.
"""

import programs
from rounds import NotRun, Rounds

FEW_RANKS, MANY_RANKS, RANKS_PER_HOST, TENSORS = 512, 32768, 8, 16  # the many: 45 s and 9.5 GB


class Simulated:
    """What a run printed; nothing of it goes on."""

    def __init__(self, bench, ranks):
        self.words = [bench.program("bench_negotiation"), str(ranks), str(RANKS_PER_HOST), str(TENSORS)]
        self.results = programs.json_lines(programs.run(self.words), self.words)
        latest = self.results[-1]["worst_rank"]
        if latest != ranks - 1:
            raise NotRun(f"{programs.shown(self.words)}: the root takes rank {latest} for the latest, which was rank {ranks - 1}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def leaders(self, step):
        """Of that kind of step, the results of each level of leaders, the root's first."""
        of_step = [result for result in self.results if result.get("step") == step and result["level"] != "rank"]
        return sorted(of_step, key=lambda result: (result["level"] != "root", result["level"]))


def most_bytes(leaders):
    return max(level["most_bytes"] for level in leaders)


def bytes_of_a_leader(step):
    """Of the busiest leader in a step of that kind: of many ranks, beside few."""
    def measure(bench):
        few, many = (bench.keep(("negotiation", ranks), lambda ranks=ranks: Simulated(bench, ranks)) for ranks in (FEW_RANKS, MANY_RANKS))
        levels = many.leaders(step)
        each = [f"{level['level']} {level['messages']:.3g}, {level['us'] / 1e3:.3g} ms" for level in levels]
        note = "there, messages and CPU: " + ", ".join(each)
        return Rounds("B", [(most_bytes(levels), most_bytes(few.leaders(step)))], programs.shown(few.words),
                      programs.shown(many.words), note, is_counted=True)

    return measure
