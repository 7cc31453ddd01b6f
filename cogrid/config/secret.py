"""Secrets that may stand in a file of their own: a value, or the file that holds it alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from cogrid.config.check import wrong
from cogrid.config.keys import Given
from cogrid.config.settings import Config


def with_secrets(config: Config, taken: Mapping[str, Given], problems: list[str]) -> Config:
    """The configuration with each secret that only its file was named for. taken: what was set, by
    key; problems: what is wrong is added to it."""
    redis, worker = config.redis, config.worker
    if redis.password_file and not redis.password:
        found = _read("redis.password", taken["redis.password_file"], config, problems)
        redis = replace(redis, password=found)
    if worker.engine_key_file and not worker.engine_key:
        found = _read("worker.engine_key", taken["worker.engine_key_file"], config, problems)
        worker = replace(worker, engine_key=found)
    return replace(config, redis=redis, worker=worker)


def _read(key: str, given: Given, config: Config, problems: list[str]) -> str:
    """What the file holds; a path in the configuration file begins where that stands."""
    beside = Path(config.file).expanduser().parent if given.in_file else Path()
    file = beside / Path(str(given.value)).expanduser()
    place = f"{given.source}: {given.key} {file}"
    try:
        secret = file.read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        problems.append(f"{place}: {error.strerror}")
        return ""
    except UnicodeDecodeError:
        problems.append(f"{place}: it is not UTF-8 text")
        return ""
    if not secret:
        problems.append(f"{place}: it is empty")
    elif right := wrong(key, secret):
        problems.append(f"{place}: {right}")
    return secret
