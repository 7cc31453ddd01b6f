"""A machine that answers over SSH what a test has it say. It greets, lets anybody in and speaks the
protocol of ``cogrid.remote``; the scripts themselves run on real hosts, in tests/hosts."""

from __future__ import annotations

import contextlib
import json
import shlex
import socket
import threading
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import msgspec
import paramiko

from cogrid import __version__
from cogrid.ops.hosts import act, logs
from cogrid.ops.sanity import as_unit, probe
from tests.ops.sanity.saying import MARK, UNIT, a_host, a_line, a_unit
from tests.ops.sanity.test_judge import FINE as A_FINE_TRIAL

ENGINE = "ollama.service"
"""A unit that is no worker's, so that its start and stop ask nothing of the grid."""
LOOK = files("cogrid.ops.sanity").joinpath("look.sh").read_text()
STOPPED = {"ActiveState": "inactive", "SubState": "dead"}
Answer = Callable[[tuple[str, ...]], str]


class Machine:
    """One that is well: the worker esxi, an engine, and a journal of two lines. ``answers`` (script
    -> what it prints) may be changed. config: an ssh_config that knows it."""

    def __init__(self, home: Path) -> None:
        self.engine: dict[str, str] = {}
        self.answers: dict[str, Answer] = {
            LOOK: self.look,
            logs.JOURNAL: lambda _: "#readable\n" + "".join(map(entry, ("begins", "is up"))),
            act._SYSTEMCTL: self.systemctl,
            as_unit._AS_UNIT: lambda _: f"{msgspec.json.encode(A_FINE_TRIAL).decode()}\nEXIT:0\n",
            probe._BARE: lambda _: "{}",
            "id -u": lambda _: "0\n",
        }
        self._key = paramiko.ECDSAKey.generate()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.config = write_config(home)
        known = f"[127.0.0.1]:{self.port} {self._key.get_name()} {self._key.get_base64()}\n"
        (home / "known_hosts").write_text(known)
        self._open: list[paramiko.Transport] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """As an operator names it."""
        return f"127.0.0.1:{self.port}"

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for transport in self._open:
            transport.close()

    def look(self, args: tuple[str, ...]) -> str:
        mark, _, *more = args
        units = [a_unit(version=__version__)]
        if ENGINE in more:
            argv = ["/usr/bin/ollama", "serve"]
            units.append(a_unit(self.engine, name=ENGINE, text="[Service]\n", argv=argv))
        return a_host(*units, clock=f"{time.time()}\n").replace(MARK, mark)

    def systemctl(self, args: tuple[str, ...]) -> str:
        self.engine = STOPPED if args[0] == "stop" else {}
        return ""

    def _accept(self) -> None:
        while True:
            try:
                connected, _ = self._listener.accept()
            except OSError:
                return
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            transport = paramiko.Transport(connected)
            transport.add_server_key(self._key)
            self._open.append(transport)
            transport.start_server(event=threading.Event(), server=_Anybody(self))

    def run(self, channel: paramiko.Channel, mark: str) -> None:
        """Until that side hangs up, which may be at any moment."""
        with contextlib.suppress(EOFError, OSError, paramiko.SSHException):
            self._answer(channel, mark)

    def _answer(self, channel: paramiko.Channel, mark: str) -> None:
        """What ``remote.script`` has the shell do, with an answer in place of the script's."""
        channel.sendall(f"\n{mark} 1\n".encode())
        channel.sendall_stderr(f"\n{mark}\n".encode())
        stdin = channel.makefile("rb")
        text = stdin.read(int(stdin.readline())).decode()
        script = next((known for known in self.answers if f"\n{known}\n#{mark}" in text), "")
        words = tuple(shlex.split(text.removesuffix(f"\n{script}\n#{mark}")))[2:] if script else ()
        if script:
            channel.sendall(self.answers[script](words).encode("utf-8", "surrogateescape"))
        if script == logs.JOURNAL and words[4] == "follow":
            while not channel.closed:
                time.sleep(0.02)
            return
        channel.send_exit_status(0 if script else 127)
        channel.close()


class _Anybody(paramiko.ServerInterface):
    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def check_auth_none(self, username: str) -> int:
        return int(paramiko.common.AUTH_SUCCESSFUL)

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return int(paramiko.common.OPEN_SUCCEEDED)

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        mark = command.decode().split()[-1]
        threading.Thread(target=self._machine.run, args=(channel, mark), daemon=True).start()
        return True


def entry(text: str, unit: str = UNIT) -> str:
    """One line of its journal."""
    return json.dumps({**a_line(text), "_SYSTEMD_UNIT": unit}) + "\n"


def write_config(home: Path) -> Path:
    """An ssh_config with nothing of the person who runs the test."""
    path = home / "ssh_config"
    path.write_text(
        f"Host *\n  User root\n  IdentityFile none\n  IdentitiesOnly yes\n  IdentityAgent none\n"
        f"  UserKnownHostsFile {home}/known_hosts\n  GlobalKnownHostsFile /dev/null\n"
        "  StrictHostKeyChecking yes\n"
    )
    return path
