"""A support bundle: what one needs to help somebody else, without prompts, secrets, keys, users.

It is made from values that hold nothing of the kind, and whatever was configured as a secret is
looked for once more before anything is written.
"""

from __future__ import annotations

import io
import json
import os
import platform
import tarfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from cogrid import __version__
from cogrid.config import Config, Effective
from cogrid.errors import CogridError, ConflictError
from cogrid.model.event import Event
from cogrid.ops.doctor import Checkup
from cogrid.ops.settings import HIDDEN, settings
from cogrid.ops.status import status
from cogrid.ops.times import iso
from cogrid.store.client import Store
from cogrid.store.events import read_before
from cogrid.store.refusal import StoreError

EVENTS = 1_000
"""The newest that are taken along."""
TOLD = frozenset(
    {
        "submitted", "claimed", "claimed_again", "moved", "reaped", "promoted", "hold", "hello",
        "registered", "refused", "repaired", "requeued", "revived", "wish",
    }
)  # fmt: skip
"""Events whose reason is cogrid's own words; that of others may quote an engine or an operator."""
BY = "by "
"""What follows it is the operator's name."""
PACKAGES = ("click", "rich", "redis", "hiredis", "httpx", "starlette", "uvicorn", "msgspec")


def write_bundle(path: Path, found: Effective, checked: Checkup, store: Store | None) -> None:
    """Write the tar.gz, readable by its owner only. ConflictError where the file is there. store:
    None where Redis was not reached."""
    parts = dict(_parts(found, checked, store))
    secrets = _secrets(found.config)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise ConflictError(f"{path} is there already", "name another file") from error
    except OSError as error:
        raise CogridError(f"{path} cannot be written: {error.strerror}") from error
    with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, value in parts.items():
            text = json.dumps(value, ensure_ascii=False, indent=1, default=str)
            _add(archive, f"cogrid-bundle/{name}.json", without(text, secrets))


def without(text: str, secrets: tuple[str, ...]) -> str:
    """The text with ``***`` for every secret, as it is and as JSON writes it."""
    for secret in secrets:
        for form in (
            secret,
            json.dumps(secret, ensure_ascii=False)[1:-1],
            json.dumps(secret)[1:-1],
        ):
            text = text.replace(form, HIDDEN)
    return text


def _parts(found: Effective, checked: Checkup, store: Store | None) -> Iterator[tuple[str, Any]]:
    yield "doctor", asdict(checked)
    yield "versions", _versions()
    yield "config", asdict(settings(found))
    if store is not None:
        yield from _of_the_grid(store, found.config)


def _of_the_grid(store: Store, config: Config) -> Iterator[tuple[str, Any]]:
    """What our user may not read is said instead."""
    try:
        yield "status", _status(store, config)
        events = store.read(read_before(store.keys, most=EVENTS))
        yield "events", [_event(event) for event in events]
        if store.gaps and store.unread:
            yield "hidden", [str(gap) for gap in store.gaps.all]
    except StoreError as error:
        yield "refused", error.message


def _versions() -> dict[str, Any]:
    return {
        "cogrid": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _status(store: Store, config: Config) -> dict[str, Any]:
    """Without users: who asked is nobody's business."""
    found = asdict(status(store, config.limits))
    for worker in found["workers"]:
        for run in worker["runs"]:
            run["user"] = HIDDEN
    return found


def _event(event: Event) -> dict[str, Any]:
    return {
        "at": iso(event.at_ms),
        "kind": event.edge,
        "task": event.task or None,
        "worker": event.worker or None,
        "reason": _reason(event) or None,
    }


def _reason(event: Event) -> str:
    if event.edge not in TOLD:
        return HIDDEN
    if event.edge in ("wish", "requeued", "revived"):
        return event.reason.partition(BY)[0].strip()
    return event.reason


def _secrets(config: Config) -> tuple[str, ...]:
    """What must not appear, the longest first. A password of one or two letters would make a text
    of asterisks, and is no secret."""
    url = config.redis.url
    try:
        in_url = urlsplit(url).password or ""
    except ValueError:
        in_url = ""
    own = (config.redis.password, config.client.api_key, config.worker.engine_key)
    said = (in_url, unquote(in_url), *own)
    return tuple(sorted({each for each in said if len(each) > 2}, key=len, reverse=True))


def _add(archive: tarfile.TarFile, name: str, text: str) -> None:
    data = text.encode("utf-8", "backslashreplace")
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = len(data), 0o600, int(time.time())
    archive.addfile(entry, io.BytesIO(data))
