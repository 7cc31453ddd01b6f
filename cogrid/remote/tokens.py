"""The tokens that values of ssh_config may hold (TOKENS in ssh_config(5))."""

from __future__ import annotations

import getpass
import hashlib
import os
import re
import socket
from pathlib import Path


def tokens(
    *, name: str, host_name: str, port: int, user: str, alias: str, jump: str
) -> dict[str, str]:
    """What each token stands for. name: as it was named. alias: HostKeyAlias, or "". jump: the jump
    hosts as configured, or ""."""
    local = socket.gethostname()
    joined = f"{local}{host_name}{port}{user}{jump}"
    return {
        "%": "%",
        "C": hashlib.sha1(joined.encode(), usedforsecurity=False).hexdigest(),
        "d": str(Path.home()),
        "h": host_name,
        "i": str(os.getuid()),
        "j": jump,
        "k": alias or name,
        "L": local.partition(".")[0],
        "l": local,
        "n": name,
        "p": str(port),
        "r": user,
        "u": getpass.getuser(),
    }


def expand(text: str, words: dict[str, str]) -> str:
    """Replaces the tokens; one that is not known stays as it is."""
    return re.sub(r"%(.)", lambda found: words.get(found[1], found[0]), text)


def expand_path(text: str, words: dict[str, str]) -> Path:
    """The same in a file's name, with ``~`` and ``${VARIABLE}`` as well."""
    named = re.sub(r"\$\{(\w+)\}", lambda found: os.environ.get(found[1], ""), text)
    return Path(expand(named, words)).expanduser()
