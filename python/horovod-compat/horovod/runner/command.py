# SPDX-License-Identifier: Apache-2.0
"""The command horovodrun: hvrun, which understands its options. By the name that it is called with it knows that ranks are to
have HOROVOD_RANK and its kin."""

import os
import sys

from hvrun._programs import find_program


def main():
    path = find_program("hvrun")
    if path is None:
        sys.exit("horovodrun: the program hvrun is neither beside this python nor on PATH; try: pip install hvrun")
    os.execv(path, ["horovodrun", *sys.argv[1:]])
