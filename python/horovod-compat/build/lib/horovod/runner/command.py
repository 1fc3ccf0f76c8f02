# SPDX-License-Identifier: Apache-2.0
"""The command horovodrun: hvrun, which understands its options."""

import os
import sys

from hvrun._programs import find_program


def main():
    path = find_program("hvrun")
    if path is None:
        sys.exit("horovodrun: the program hvrun is neither beside this python nor on PATH; try: pip install hvrun")
    os.execv(path, [path, *sys.argv[1:]])
