"""Installs a bundle on a host, step by step; each step leaves a host whole.

``stage`` puts it beside what runs there, ``switch`` makes it what units run, ``prune`` at last
takes old ones away, so that one is kept to go back to.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from cogrid.model.host import Scope
from cogrid.ops.delivery.bundle import Bundle, archive
from cogrid.ops.delivery.python import HostPython
from cogrid.ops.delivery.refusal import DeliveryError

if TYPE_CHECKING:
    from cogrid.remote.connection import Connection

SYSTEM = "/opt/cogrid"
"""Of the machine's own units. Those of a user: cogrid in the user's data directory."""
ACT_S = 90.0
"""For an act that installs nothing; most of it to wait for another one there."""
STAGE_S = 420.0
"""For pip, the proof, and another one to end, on a slow machine."""
STALL_S = 30.0
"""After which the host gives up an upload of which nothing comes any more."""
UPLINK_BYTES_S = 50_000
"""The slowest link that is waited for, in bytes a second."""
ACT = 'exec "$1" -I -c "$2" "$3"'


@dataclass(frozen=True, slots=True)
class Version:
    """One that lies on a host. python: the interpreter it was made with. whole: false for what an
    interrupted installation left, which the next one takes away. used_at: Unix time in s."""

    name: str
    version: str
    python: str
    whole: bool
    used_at: float


@dataclass(frozen=True, slots=True)
class Installed:
    """base: the directory of this scope there. current: the name of the one that units run, or "".
    works: what its ``--version`` says, "" where it does not run."""

    base: str
    current: str
    works: str
    versions: tuple[Version, ...]

    @property
    def version(self) -> str:
        """cogrid's version that is current, "" for none."""
        return next((each.version for each in self.versions if each.name == self.current), "")

    @property
    def before(self) -> Version | None:
        """The one that units ran before the current one was installed. After a way back there is
        none: the one that was left has been used later."""
        whole = [each for each in self.versions if each.whole]
        now_s = next((each.used_at for each in whole if each.name == self.current), 0.0)
        older = (each for each in whole if each.used_at < now_s)
        return max(older, key=lambda each: each.used_at, default=None)


@dataclass(frozen=True, slots=True)
class Staged:
    """An installation that lies ready. fresh: false where it was there already."""

    scope: Scope
    base: str
    name: str
    python: HostPython
    fresh: bool


@dataclass(frozen=True, slots=True)
class Removed:
    """removed: versions. kept: those that a process still runs; then none was removed. left: what
    else lies in the directory and is not ours."""

    removed: tuple[str, ...]
    kept: tuple[str, ...]
    left: tuple[str, ...]


def read_installed(connection: Connection, scope: Scope, python: HostPython) -> Installed:
    """What of cogrid is there, as the user who logs in sees it; changes nothing."""
    return msgspec.convert(_act(connection, scope, python, "look", root=False), Installed)


def has(installed: Installed, bundle: Bundle) -> bool:
    """Whether exactly this lies there already."""
    return any(each.whole and each.name == bundle.name for each in installed.versions)


def stage(
    connection: Connection,
    bundle: Bundle,
    scope: Scope,
    tell: Callable[[str], None] = lambda _line: None,
) -> Staged:
    """Upload and install it beside what runs there, and prove that it runs. Nothing uses it yet.

    What is there already and runs is left alone. DeliveryError: the host is as it was. tell: gets a
    line before each part.
    """
    names = {"name": bundle.name, "version": bundle.version}
    found = _act(connection, scope, bundle.python, "ready", names)
    if not found["ready"]:
        tell(f"sending {bundle.packed_bytes / 1e6:.1f} MB")
        found = _upload(connection, bundle, scope, tell, names)
    return Staged(
        scope=scope,
        base=str(found["base"]),
        python=bundle.python,
        fresh=bool(found.get("fresh")),
        name=bundle.name,
    )


def _upload(
    connection: Connection,
    bundle: Bundle,
    scope: Scope,
    tell: Callable[[str], None],
    names: dict[str, str],
) -> dict[str, Any]:
    request = {
        **names,
        "wheels": {wheel.path.name: wheel.sha256 for wheel in (bundle.pip, *bundle.wheels)},
        "pip": bundle.pip.path.name,
        "needed_bytes": bundle.needed_bytes,
        "everyone": scope == Scope.SYSTEM,
        "stall_s": STALL_S,
    }
    return _act(
        connection,
        scope,
        bundle.python,
        "stage",
        request,
        stdin=archive(bundle),
        timeout_s=STAGE_S + bundle.packed_bytes / UPLINK_BYTES_S,
        tell=tell,
    )


def staging(base: str, name: str) -> str:
    """How the last word of the process begins that stages this one there, by which it is known.
    base: SYSTEM, or "" for the user's own."""
    return json.dumps({"act": "stage", "base": base, "name": name}).removesuffix("}")


def switch(connection: Connection, staged: Staged, back: bool = False) -> str:
    """Let units start this one from now on; what runs goes on as it is until it is restarted. The
    name of the one that they started before, "" for none. back: to one that they started before."""
    request = {"name": staged.name, "back": back}
    done = _act(connection, staged.scope, staged.python, "switch", request)
    return str(done["before"])


def prune(connection: Connection, scope: Scope, python: HostPython) -> tuple[str, ...]:
    """Take old ones away but the one used last before the current, and those that still run: the
    last step, since there is no undo. Returns their names."""
    return tuple(_act(connection, scope, python, "prune")["removed"])


def remove(connection: Connection, scope: Scope, python: HostPython) -> Removed:
    """Take every version away, once no unit there needs one."""
    return msgspec.convert(_act(connection, scope, python, "remove"), Removed)


def _act(
    connection: Connection,
    scope: Scope,
    python: HostPython,
    act: str,
    request: Mapping[str, object] = MappingProxyType({}),
    *,
    root: bool | None = None,
    stdin: bytes = b"",
    timeout_s: float = ACT_S,
    tell: Callable[[str], None] = lambda _line: None,
) -> dict[str, Any]:
    """One act of on_host.py. root: None where the scope decides."""
    base = SYSTEM if scope == Scope.SYSTEM else ""
    done = connection.run(
        ACT,
        python.path,
        resources.files(__package__).joinpath("on_host.py").read_text(),
        json.dumps({"act": act, "base": base, **request}),
        stdin=stdin,
        timeout_s=timeout_s,
        root=scope == Scope.SYSTEM if root is None else root,
        on_line=lambda line: tell(line[2:]) if line.startswith("- ") else None,
    )
    answer = _answer(done.text)
    if answer is None:
        said = done.err.decode(errors="replace").strip().splitlines()
        what = said[-1] if said else f"exit code {done.code}"
        raise DeliveryError(
            connection.target.shown, "failed", f"{python.path} could not {act}: {what}"
        )
    if "refused" in answer:
        raise DeliveryError(connection.target.shown, answer["refused"], answer["what"])
    return answer


def _answer(text: str) -> dict[str, Any] | None:
    """The JSON object in the last line, if there is one."""
    try:
        found = json.loads(text.splitlines()[-1])
    except (IndexError, ValueError):
        return None
    return found if isinstance(found, dict) else None
