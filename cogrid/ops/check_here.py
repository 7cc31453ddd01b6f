"""This machine: the configuration, its files, the engine beside us."""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path

from cogrid import __version__
from cogrid.config import Config, Effective, state_dir
from cogrid.config.keys import SECRET
from cogrid.engine.api import EngineError
from cogrid.engine.find import find
from cogrid.errors import CogridError
from cogrid.ops.check import Check, failed, passed, warned
from cogrid.rules.counted import counted

OTHERS = 0o077
"""Rights of everybody but the owner."""


def check_here(found: Effective, env: Mapping[str, str]) -> Iterator[Check]:
    """Versions, configuration, state directory, engine."""
    yield passed("versions", f"cogrid {__version__}, Python {platform.python_version()}")
    yield from _configuration(found)
    yield _state(found.config, env)
    yield asyncio.run(_engine(found.config))


def _configuration(found: Effective) -> Iterator[Check]:
    file = found.config.file
    set_here = counted(len(found.sources), "setting")
    yield passed("configuration", f"{set_here} other than default; file: {file or 'none'}")
    if not file or not any(found.sources.get(key, "").startswith(file) for key in SECRET):
        return
    path = Path(file).expanduser()
    if os.name == "posix" and path.stat().st_mode & OTHERS:
        yield warned(
            "configuration",
            f"{file} holds a secret and others may read it",
            f"chmod 600 {path}",
        )


def _state(config: Config, env: Mapping[str, str]) -> Check:
    """It is made when it is first needed, so what counts is the first directory that exists."""
    wanted = state_dir(config, env)
    there = next(path for path in (wanted, *wanted.absolute().parents) if path.exists())
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        return passed("here", f"the state directory {wanted} can be written")
    return failed("here", f"the state directory {wanted} cannot be written", "set worker.state_dir")


async def _engine(config: Config) -> Check:
    """None here is no fault: only machines that run a worker need one."""
    wanted = config.worker.engine
    try:
        engine = await find(wanted or None, key=config.worker.engine_key)
        try:
            version, models = await engine.version(), await engine.listed()
        finally:
            await engine.aclose()
    except EngineError as error:
        if wanted:
            return failed("engine", error.message, error.hint or "look at the engine's log")
        return passed("engine", "none on this machine; only one that runs a worker needs it")
    except CogridError as error:
        return failed("engine", error.message, error.hint)
    what = f"{engine.kind} {version} at {engine.url} with {counted(len(models), 'model')}"
    if not models:
        return warned("engine", what, "give it a model, e.g. ollama pull gemma3:1b")
    return passed("engine", what)
