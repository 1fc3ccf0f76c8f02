# SPDX-License-Identifier: Apache-2.0
"""SSH keys for tests: made once per process, by name."""

import dataclasses
import pathlib
import subprocess
import tempfile


@dataclasses.dataclass(frozen=True)
class KeyPair:
    private: str
    public: str  # "type base64", no comment


_made = {}


def key_pair(name, kind="ed25519"):
    """Always the same pair for the same name and kind."""
    if (name, kind) not in _made:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "key"
            subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", name, "-f", path], check=True, stdin=subprocess.DEVNULL)
            public = " ".join(path.with_suffix(".pub").read_text().split()[:2])
            _made[name, kind] = KeyPair(path.read_text(), public)
    return _made[name, kind]


def host_certificate(authority, pair, names):
    """pair's public key as a host certificate of that authority (a KeyPair), for these names."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        signing = folder / "authority"
        signing.write_text(authority.private)
        signing.chmod(0o600)
        public = folder / "host.pub"
        public.write_text(pair.public + "\n")
        subprocess.run(["ssh-keygen", "-q", "-s", signing, "-I", "test", "-h", "-n", ",".join(names), public], check=True)
        return (folder / "host-cert.pub").read_text()
