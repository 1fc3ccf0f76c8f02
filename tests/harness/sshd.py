# SPDX-License-Identifier: Apache-2.0
"""The OpenSSH server of a host, its keys, and what clients know of them."""

import os

from harness.keys import host_certificate, key_pair
from harness.waiting import wait_for

SERVER = "/usr/sbin/sshd"
CONFIGURATION = """\
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
StrictModes yes
UsePAM no
UseDNS no
MaxStartups 100
X11Forwarding no
PrintMotd no
AcceptEnv LANG LC_*
Subsystem sftp /usr/lib/openssh/sftp-server
PidFile /run/sshd.pid
"""
CLIENT_CONFIGURATION = """\
Host *
    SendEnv LANG LC_*
    HashKnownHosts yes
"""


def set_up(host, kinds=("ed25519",)):
    """Writes the server's configuration and host keys, and the client's configuration, as a distribution does."""
    folder = host.folder / "etc" / "ssh"
    (folder / "sshd_config").write_text(CONFIGURATION)
    (folder / "ssh_config").write_text(CLIENT_CONFIGURATION)
    for kind in kinds:
        set_host_key(host, kind=kind)


def set_host_key(host, name=None, kind="ed25519"):
    """Gives the host the key pair of that name (its own by default); a running sshd keeps what it has read."""
    pair = key_pair(name or f"host-{host.name}", kind)
    path = host.folder / "etc" / "ssh" / f"ssh_host_{kind}_key"
    path.write_text(pair.private)
    path.chmod(0o600)
    path.with_suffix(".pub").write_text(pair.public + "\n")
    return pair


def certify(host, authority, names):
    """Gives the host a certificate of the host authority (a KeyPair); from the next start of sshd on."""
    folder = host.folder / "etc" / "ssh"
    pair = key_pair(f"host-{host.name}")
    (folder / "ssh_host_ed25519_key-cert.pub").write_text(host_certificate(authority, pair, names))
    configure(host, "HostCertificate /etc/ssh/ssh_host_ed25519_key-cert.pub")


def configure(host, line):
    """Adds a line to sshd_config, before all others, so that it wins."""
    path = host.folder / "etc" / "ssh" / "sshd_config"
    path.write_text(line + "\n" + path.read_text())


def begin(host, *, port=22, before=()):
    """Starts sshd; listens() says when it answers. before: words before the command, such as setarch's."""
    result = host.run([*before, SERVER, "-p", str(port), "-E", "/run/sshd.log"], clean_path=True)
    assert result.code == 0, f"{host.name}: sshd: {result}\n{log(host)}"


def await_listening(host, port=22):
    wait_for(lambda: listens(host, port), 10, lambda: f"sshd of {host.name} on port {port}\n{log(host)}")


def start(host, **options):
    begin(host, **options)
    await_listening(host, options.get("port", 22))


def stop(host):
    """Ends the listening sshd only: sessions go on."""
    listener = host.sshd
    assert listener, f"{host.name} has no sshd"
    listener.kill()
    wait_for(lambda: not listener.runs, 5, f"end of sshd on {host.name}")


def restart(host, **options):
    stop(host)
    start(host, **options)


def log(host):
    try:
        return host.outside("/run/sshd.log").read_text(errors="replace")
    except OSError:
        return ""


def listens(host, port):
    """Whether anything in the host listens on this TCP port."""
    with open(f"/proc/{host.pid}/net/tcp") as table:
        return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in table.readlines()[1:])


def authorize(host, user, public):
    """Lets the owner of a public key log in."""
    _write_ssh_file(host, user, "authorized_keys", public + "\n")


def give_key(host, user, pair, name="id_ed25519"):
    _write_ssh_file(host, user, name, pair.private)
    _write_ssh_file(host, user, name + ".pub", pair.public + "\n")


def write_known_hosts(host, user, text):
    _write_ssh_file(host, user, "known_hosts", text)


def known_hosts_lines(hosts, kinds=("ed25519",)):
    return "".join(f"{','.join([host.name, *host.addresses.values()])} {key_pair(f'host-{host.name}', kind).public}\n"
                   for host in hosts for kind in kinds)


def _write_ssh_file(host, user, name, text):
    folder = f"{host.users[user].home}/.ssh"
    host.write_file(f"{folder}/{name}", text, mode=0o600, user=user)
    os.chmod(host.outside(folder), 0o700)
