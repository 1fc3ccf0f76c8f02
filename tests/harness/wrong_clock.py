# SPDX-License-Identifier: Apache-2.0
"""A host whose clock is wrong, for --rsh: wrong_clock.py SECONDS ssh ... runs that, and sets its agent's wall clock ahead.

No host can have a clock of its own (there is no namespace for it), so what its agent tells of it is changed on the way:
in its Hello, and in its Pongs (src/wire/messages.h).
"""

import os
import re
import struct
import subprocess
import sys
import threading

HELLO, PONG, PROTOCOL = 1, 45, 4
FIRST = re.compile(b"(?s)....\x01" + re.escape(struct.pack("<I", PROTOCOL)))


def ahead(body, at, nanoseconds):
    wrong = struct.unpack_from("<q", body, at)[0] + nanoseconds
    return body[:at] + struct.pack("<q", wrong) + body[at + 8:]


def changed(body, nanoseconds):
    """body: a frame's type and payload."""
    if body[0] == HELLO:
        return ahead(body, 1 + 4 + 4 + struct.unpack_from("<I", body, 5)[0] + 4, nanoseconds)
    return ahead(body, 1 + 8, nanoseconds) if body[0] == PONG else body


def pass_on(source, nanoseconds):
    """What the start of an agent says first is left alone, and held up by nothing: it is a conversation."""
    waiting, has_begun = b"", False
    while piece := os.read(source, 1 << 16):
        if not has_begun:
            first = FIRST.search(piece)
            os.write(1, piece[:first.start()] if first else piece)
            has_begun, piece = bool(first), piece[first.start():] if first else b""
        waiting += piece
        while len(waiting) >= 4 and len(waiting) >= 4 + (size := struct.unpack_from("<I", waiting)[0]):
            os.write(1, waiting[:4] + changed(waiting[4:4 + size], nanoseconds))
            waiting = waiting[4 + size:]
    os.write(1, waiting)


def main():
    child = subprocess.Popen(sys.argv[2:], stdin=0, stdout=subprocess.PIPE)
    reader = threading.Thread(target=pass_on, args=(child.stdout.fileno(), int(float(sys.argv[1]) * 1e9)))
    reader.start()
    reader.join()
    sys.exit(child.wait())


if __name__ == "__main__":
    main()
