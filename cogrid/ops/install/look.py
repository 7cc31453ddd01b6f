"""Read what an installation needs to know of this machine, and print it as JSON.

This file is sent to a host and run there by its own Python (3.11 or later, with nothing installed).
It reads a question (JSON) from stdin, since a password in it must be in no list of processes. It
writes nothing and starts nothing but ``systemctl``, and each thing that it waits for has a limit.
"""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import json
import os
import pwd
import re
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

WAIT_S = 3.0
"""For each answer from the network."""
ASK_S = 10.0
"""For systemctl."""
MANY = 50
"""Units and processes that are told; more are of no use to anybody."""
SYSTEM_PLACES = ("/etc/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system")
LONGEST_BYTES = 1 << 18
"""Of a file; a longer one is cut."""

Json = dict[str, Any]


def look(asked: Json) -> Json:
    """The facts; what each is stands at their class."""
    return {
        "clock_ms": round(time.time() * 1000),
        "redis": reach_redis(asked["redis"]) if asked["redis"] else None,
        "engine": find_engine(asked["engines"]),
        "account": account(asked["user"]),
        "workdir": workdir(asked["workdir"], asked["user"]),
        "place": place(asked["base"]),
        "lingers": lingers(),
        "unit": unit(asked),
        "environment": text_of(asked["environment_path"]),
        "authorities": text_of(asked["authorities_path"]),
        "workers": [*units(asked), *processes()][:MANY],
    }


# The server.


def reach_redis(asked: Json) -> Json:
    """Whether it answers here. fault: "" or name, itself, network, tls, password, server."""
    try:
        found = socket.getaddrinfo(asked["host"], asked["port"], type=socket.SOCK_STREAM)
    except OSError as error:
        return {"fault": "name", "said": error.strerror or str(error)}
    places = dict.fromkeys(str(each[4][0]) for each in found)
    if all(map(means_here, places)):
        return {"fault": "itself", "said": ", ".join(places)}
    try:
        with connected(asked) as link:
            return greeting(link, asked)
    except ssl.SSLError as error:
        return {"fault": "tls", "said": getattr(error, "verify_message", "") or error.reason}
    except OSError as error:
        late = isinstance(error, TimeoutError)
        said = f"no answer within {WAIT_S:g} s" if late else error.strerror or str(error)
        return {"fault": "network", "said": said}


def means_here(address: str) -> bool:
    """Whether each machine calls itself so: 127.0.0.1, ::1; 0.0.0.0 connects likewise."""
    found = ipaddress.ip_address(address.partition("%")[0])
    return found.is_loopback or found.is_unspecified


@contextlib.contextmanager
def connected(asked: Json) -> Iterator[socket.socket]:
    """A connection to it, with TLS where it is asked for."""
    with socket.create_connection((asked["host"], asked["port"]), WAIT_S) as plain:
        if not asked["tls"]:
            yield plain
            return
        context = ssl.create_default_context(cadata=asked["authorities"] or None)
        with context.wrap_socket(plain, server_hostname=asked["host"]) as link:
            yield link


def greeting(link: socket.socket, asked: Json) -> Json:
    """AUTH and PING. Of what the server says only its first word goes on: some servers repeat in an
    error what they were sent."""
    reader = link.makefile("rb")
    words = [part for part in (asked["username"], asked["password"]) if part]
    if asked["password"]:
        said = exchange(link, reader, "AUTH", *words)
        if not said.startswith("+"):
            return {"fault": "password", "said": said.lstrip("-").partition(" ")[0]}
    said = exchange(link, reader, "PING")
    if said.startswith(("-NOAUTH", "-NOPERM")):
        return {"fault": "password", "said": said.lstrip("-").partition(" ")[0]}
    if said.startswith(("+PONG", "-LOADING", "-MASTERDOWN")):
        return {"fault": "", "said": ""}
    return {"fault": "server", "said": said.lstrip("-").partition(" ")[0][:40]}


def exchange(link: socket.socket, reader: Any, *words: str) -> str:
    """One command, and the first line of its answer."""
    parts = [word.encode() for word in words]
    link.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))
    return str(reader.readline(1000), "utf-8", "replace").rstrip("\r\n")


# The engine.


def find_engine(urls: list[str]) -> str:
    """The first of these where a web server answers, "" where none does."""
    return next((url for url in urls if answers(url)), "")


def answers(url: str) -> bool:
    """Whatever it answers: what kind of engine it is, the worker finds out."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    link = kind(parts.hostname or "", parts.port, timeout=WAIT_S)
    try:
        link.request("GET", f"{parts.path}/v1/models")
        link.getresponse()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        link.close()
    return True


# Users and places.


def account(name: str) -> Json | None:
    """The user of that name; null where there is none."""
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        return None
    return {"uid": found.pw_uid, "home": found.pw_dir}


def workdir(path: str, user: str) -> str:
    """What is wrong with it, "" where the user can work in it."""
    if not path:
        return ""
    if not os.path.isabs(path):
        return "relative"
    if not os.path.lexists(path):
        return "missing"
    if not os.path.isdir(path):
        return "file"
    return "" if can_enter(path, user) else "closed"


def can_enter(path: str, user: str) -> bool:
    """Tried as that user, where this is root: permissions have more sides than their bits."""
    try:
        who = pwd.getpwnam(user)
    except KeyError:
        return True  # the user is what is missing
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(OSError):
            if os.geteuid() == 0:
                os.initgroups(user, who.pw_gid)
                os.setgid(who.pw_gid)
                os.setuid(who.pw_uid)
            os.chdir(path)
            os.listdir(path)
            code = 0
        os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def place(base: str) -> Json:
    """The file system that would hold the installation."""
    path = Path(base)
    while not path.exists():
        path = path.parent
    found = os.statvfs(path)
    return {
        "free_bytes": found.f_bavail * found.f_frsize,
        "noexec": bool(found.f_flag & os.ST_NOEXEC),
        "readonly": bool(found.f_flag & os.ST_RDONLY),
        "path": str(path),
    }


def lingers() -> bool:
    """Whether this user's units run without a login."""
    return Path("/var/lib/systemd/linger", pwd.getpwuid(os.getuid()).pw_name).exists()


# Units and processes.


def unit(asked: Json) -> Json:
    """The unit as it stands there. text: null where there is no such file."""
    return {"text": text_of(asked["unit_path"]), "state": state(asked, asked["unit"])}


def state(asked: Json, name: str) -> str:
    """What systemd says of a unit."""
    return systemctl(asked["scope"], *asked["show"], name)


def text_of(path: str) -> str | None:
    """A file of text; null where there is none, or none that can be read."""
    try:
        with open(path, "rb") as file:
            return file.read(LONGEST_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


def systemctl(scope: str, *words: str) -> str:
    """What it says, "" where it does not answer."""
    user = ("--user",) if scope == "user" else ()
    try:
        done = subprocess.run(
            ("systemctl", *user, "--no-pager", *words),
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=ASK_S,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace")


RUNS_A_WORKER = re.compile(
    r"^ExecStart\s*=.*(worker\.py\b|cogrid\S*\s+worker\s+run\b)", re.MULTILINE
)


def units(asked: Json) -> Iterator[Json]:
    """Units of this scope whose program is a worker."""
    for path in unit_files(asked["scope"]):
        text = text_of(str(path)) or ""
        start = RUNS_A_WORKER.search(text)
        if start:
            for name in instances(path.name, asked["scope"]):
                yield {
                    "unit": name,
                    "path": str(path),
                    "command": start[0].partition("=")[2].strip(),
                    "text": text,
                    "state": state(asked, name),
                }


def unit_files(scope: str) -> Iterator[Path]:
    """The files themselves, not the links that enable them."""
    own = Path(pwd.getpwuid(os.getuid()).pw_dir, ".config/systemd/user")
    seen = set()
    for folder in (str(own),) if scope == "user" else SYSTEM_PLACES:
        with contextlib.suppress(OSError):
            for path in sorted(Path(folder).glob("*.service")):
                if path.name not in seen and path.is_file():
                    seen.add(path.name)
                    yield path


def instances(name: str, scope: str) -> list[str]:
    """A template runs under the names of its instances."""
    if "@." not in name:
        return [name]
    pattern = name.replace("@.", "@*.")
    listed = systemctl(scope, "list-units", "--all", "--plain", "--no-legend", pattern)
    return [words[0] for line in listed.splitlines() if (words := line.split())]


def processes() -> Iterator[Json]:
    """Workers that no unit runs."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with contextlib.suppress(OSError, ValueError):
                words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
                if is_worker(words) and not in_unit((folder / "cgroup").read_text()):
                    yield process(folder, words[:-1])


def process(folder: Path, words: list[str]) -> Json:
    """started: in ticks since the boot; with the number it names one process for ever."""
    uid = folder.stat().st_uid
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = str(uid)
    started = (folder / "stat").read_text().rpartition(")")[2].split()[19]
    return {"pid": int(folder.name), "started": started, "user": user, "words": words}


def is_worker(words: list[str]) -> bool:
    """``python …/worker.py``, ``cogrid worker run``, ``python -m cogrid.cli.main worker run``."""
    names = [os.path.basename(word) for word in words]
    if any(name == "worker.py" for name in names[:4]) and names[0].startswith("python"):
        return True
    begins = (at for at, name in enumerate(names[:5]) if name in ("cogrid", "cogrid.cli.main"))
    return any(names[at + 1 : at + 3] == ["worker", "run"] for at in begins)


def in_unit(groups: str) -> bool:
    """Whether a service has it, by the last part of its control group. A user's manager is one."""
    last = groups.rstrip("\n").rpartition("/")[2]
    return last.endswith(".service") and not last.startswith("user@")


if __name__ == "__main__":
    json.dump(look(json.load(sys.stdin)), sys.stdout)
