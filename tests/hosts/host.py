"""A throw-away host of its own address, brought up by testhost.sh."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cogrid.remote.access import Access
from cogrid.remote.target import Target
from tests.conftest import missing
from tests.wait import until

_SCRIPT = Path(__file__).with_name("testhost.sh")
_HOME = Path(os.environ.get("COGRID_HOSTS", "/run/cogrid-hosts"))
_LOCKS = Path("/run/lock")
"""Not in _HOME: names and addresses are the machine's, whatever COGRID_HOSTS says."""
_PROGRAMS = ("systemd-nspawn", "ip", "ssh", "ssh-keygen", "sudo", "/usr/sbin/sshd", "tcsh", "fish")


@dataclass(frozen=True, slots=True)
class Host:
    """A host that runs. The test's own looks go by ``ssh``, past the code that is tested."""

    name: str
    ip: str

    @property
    def place(self) -> Path:
        """What belongs to it here: known_hosts, ssh_config, console.log."""
        return _HOME / self.name

    @property
    def root(self) -> Path:
        """Its files."""
        return self.place / "root"

    @property
    def key(self) -> Path:
        """The private key that root there lets in."""
        return _HOME / "key"

    @property
    def target(self) -> Target:
        """Root there."""
        return Target(self.ip, user="root")

    @property
    def access(self) -> Access:
        """With its key, knowing its host key, and with nothing of the person who runs the test."""
        return Access(config=self.place / "ssh_config", connect_s=5)

    def ssh(self, script: str, *, user: str = "root", check: bool = True) -> str:
        """What a script prints there."""
        argv = ["ssh", "-F", str(self.place / "ssh_config"), f"{user}@{self.ip}", "sh"]
        done = subprocess.run(
            argv, input=script, capture_output=True, text=True, timeout=60, check=False
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout.strip()

    def login(self, user: str, *, shell: str = "/bin/bash", sudo: str = "") -> None:
        """A user there whom the key lets in. sudo: what a sudoers line allows, such as
        ``ALL=(ALL) NOPASSWD: ALL``."""
        self.ssh(
            f"useradd -m -s {shell} {user} && cd ~{user} && mkdir -m 700 .ssh &&"
            f" cp /root/.ssh/authorized_keys .ssh/ && chown -R {user}: .ssh"
        )
        if sudo:
            self.write(f"/etc/sudoers.d/{user}", f"{user} {sudo}\n", 0o440)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """A file there, root's."""
        file = self.root / path.lstrip("/")
        file.write_text(text)
        file.chmod(mode)

    def sshd(self, port: int, lines: str) -> None:
        """Another sshd on this port, with settings that come before the usual ones."""
        usual = (self.root / "etc/ssh/sshd_config").read_text()
        if "Subsystem" in lines:  # it may be said once only
            usual = usual.replace("Subsystem", "# Subsystem")
        self.write(f"/etc/ssh/sshd_{port}", f"{lines}\nPort {port}\n{usual}")
        self.ssh(f"systemd-run --quiet /usr/sbin/sshd -D -f /etc/ssh/sshd_{port}")
        until(lambda: self.greets(port), what=f"an sshd on port {port}")

    def greets(self, port: int = 22) -> bool:
        """Whether an sshd answers there."""
        try:
            with socket.create_connection((self.ip, port), timeout=1) as connected:
                return connected.recv(4) == b"SSH-"
        except OSError:
            return False

    def cut(self) -> None:
        """Takes it off the network, as a pulled cable does."""
        subprocess.run(["ip", "link", "set", f"cg-{self.name}", "down"], check=True)

    def heal(self) -> None:
        """Puts it back."""
        subprocess.run(["ip", "link", "set", f"cg-{self.name}", "up"], check=True)

    def inside(self, *argv: str) -> None:
        """Runs a program of this machine in its network."""
        subprocess.run(["ip", "netns", "exec", self.name, *argv], check=True)


@contextlib.contextmanager
def bring_up(name: str, ip: str) -> Iterator[Host]:
    """A host until the end of the block. name: up to 12 letters, one per test that may run at the
    same time on this machine."""
    _possible()
    with held(name), held(ip):
        subprocess.run([_SCRIPT, "down", name], check=True)  # a run that was killed left it
        done = subprocess.run(
            [_SCRIPT, "up", name, ip], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        try:
            yield Host(name, ip)
        finally:
            subprocess.run([_SCRIPT, "down", name], check=True)


@contextlib.contextmanager
def held(what: str) -> Iterator[None]:
    """A host's name or address is this run's until the end of the block, or of its process. Fails
    where another one has it: taking its host down would end that run's tests, not ours."""
    with (_LOCKS / f"cogrid-host-{what}").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            pytest.fail(
                f"the test host {what} is in use by another run, process {lock.read()}: "
                "wait until that has ended",
                pytrace=False,
            )
        lock.truncate(0)
        print(os.getpid(), end="", file=lock, flush=True)
        yield


def _possible() -> None:
    if os.geteuid() != 0:
        missing("root, for test hosts")
    for program in _PROGRAMS:
        if shutil.which(program) is None:
            missing(program, "its package is named in .ci/run")
