"""Row of an idle runtime: the share of a core that its busiest rank uses. SPDX-License-Identifier: Apache-2.0"""

import programs
from rounds import Rounds

IDLE_SECONDS = 3


def share_of_a_core(bench):
    words = [bench.hvrun, "-np", "2", "--no-label", bench.program("bench_idle"), str(IDLE_SECONDS)]
    pairs = [(100 * max(float(line) for line in programs.run(words).split()), None) for _ in range(bench.rounds)]
    return Rounds("% of a core", pairs, own_command=programs.shown(words))
