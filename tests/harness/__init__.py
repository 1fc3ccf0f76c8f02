# SPDX-License-Identifier: Apache-2.0
"""Real hosts on one machine, for tests: namespaces on a bridge, an sshd in each, and a look at them from outside.

Read cluster.py first (a set of hosts), then host.py (one of them). Only root can make hosts; processes.py,
running.py, programs.py and waiting.py are for everybody.
"""
