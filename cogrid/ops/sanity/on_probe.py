"""What a worker's start on the host has found: engine, models, Redis."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from cogrid.errors import UsageError
from cogrid.model.host import Host
from cogrid.model.trial import Trial, TriedModel, TriedRedis
from cogrid.model.worker import OfferState
from cogrid.ops.sanity import commands
from cogrid.ops.sanity.ask import HostSeen
from cogrid.ops.sanity.check import HostCheck, broken, doubtful, fine
from cogrid.ops.sanity.on_unit import runs
from cogrid.ops.sanity.probe import Bare, Probe
from cogrid.rules.counted import counted
from cogrid.rules.exit_code import exit_meaning
from cogrid.store.address import parse_address


def judge_probe(seen: HostSeen, probe: Probe, here: str) -> Iterator[HostCheck]:
    """One worker's unit. here: the version of cogrid on this side."""
    host, trial = seen.host, probe.trial
    if trial is None:
        if probe.unit is None or runs(probe.unit):
            yield _not_tried(host, probe)
        return
    yield _version(host, trial, here)
    if trial.engine is None:
        yield _no_engine(seen, trial)
    else:
        yield _engine(trial)
        yield from (_model(host, trial, model) for model in trial.models)
    if trial.redis:
        yield _redis(host, trial.worker, trial.redis)


def judge_bare(seen: HostSeen, bare: Bare) -> Iterator[HostCheck]:
    """A host without a worker's unit."""
    engine, redis = bare.engine, bare.redis
    if engine.url:
        yield fine("engine", "engine", f"{engine.kind} {engine.version} answers at {engine.url}")
    elif not any(unit.role for unit in seen.facts.units):
        yield doubtful(
            "engine_down",
            "engine",
            "no engine answers on the usual ports there",
            _start_engine(seen),
        )
    if redis is None:
        return
    if redis.error is None:
        yield fine("redis", "redis", "Redis answers it")
    else:
        yield broken(
            "redis_blocked",
            "redis",
            f"Redis cannot be used from there: {redis.error}",
            f"let {seen.facts.name} reach it, then {commands.on_host(seen.host, 'sanity')}",
        )


def _not_tried(host: Host, probe: Probe) -> HostCheck:
    meaning = exit_meaning(probe.ran.code)
    what = f"its program was tried there: it {meaning.what} (exit code {probe.ran.code})"
    mend = commands.trial(host)
    name = probe.unit.name if probe.unit else ""
    return broken("not_tried", "unit", what, mend, name, probe.said)


def _version(host: Host, trial: Trial, here: str) -> HostCheck:
    what = f"cogrid {trial.version} on Python {trial.python}"
    if trial.version == here:
        return fine("version", "version", what, trial.worker)
    upgrade = commands.install(host, worker=trial.worker, more=("--upgrade",))
    return doubtful("version_other", "version", f"{what}; this is {here}", upgrade, trial.worker)


def _engine(trial: Trial) -> HostCheck:
    where = "on a GPU" if trial.gpu else "on the CPU"
    have = counted(len(trial.models), "model")
    what = f"{trial.engine} answers at {trial.engine_url} with {have}, {where}"
    if trial.models:
        return fine("engine", "engine", what, trial.worker)
    pull = shlex.join(("cogrid", "model", "pull", "MODEL", "--worker", trial.worker))
    return broken("no_model", "engine", what, pull, trial.worker)


def _no_engine(seen: HostSeen, trial: Trial) -> HostCheck:
    return broken(
        "engine_down",
        "engine",
        trial.engine_error or "no engine answered in time",
        _start_engine(seen),
        trial.worker,
    )


def _start_engine(seen: HostSeen) -> str:
    """An engine that is a unit there can be started from here."""
    if seen.facts.engines:
        return commands.start(seen.host, seen.facts.engines[0])
    return commands.by_hand(seen.host, "ollama serve")


def _model(host: Host, trial: Trial, model: TriedModel) -> HostCheck:
    name, worker = model.name, trial.worker
    match model.state:
        case OfferState.OK:
            return fine("model", "model", f"{name} answered", name)
        case OfferState.MISSING:
            return broken(
                "model_missing",
                "model",
                f"{worker} is to serve {name}, and its engine does not have it",
                shlex.join(("cogrid", "model", "pull", name, "--worker", worker)),
                name,
            )
        case OfferState.PROBING:
            longer = commands.on_host(host, "sanity", "--timeout", "10m")
            return doubtful("model_slow", "model", f"{name} gave no token in time", longer, name)
    return broken(
        "model_failed",
        "model",
        f"{name} cannot answer: {model.reason or model.state}",
        commands.trial(host),
        name,
    )


def _redis(host: Host, worker: str, redis: TriedRedis) -> HostCheck:
    if redis.error is None:
        return fine("redis", "redis", f"{redis.url} can be written from there", worker)
    again = commands.install(host, worker=worker)
    if redis.ahead_s is not None:  # it answered, and refuses
        mend = f"{redis.hint}, then {again}" if redis.hint else again
        return broken("redis_refuses", "redis", redis.error, mend, worker)
    if _is_local(redis.url):
        what = f"its Redis URL {redis.url} means the host itself, and no Redis is there"
        return broken("redis_itself", "redis", what, again, worker)
    return broken(
        "redis_blocked",
        "redis",
        f"asked from there: {redis.error}",
        f"let it reach {redis.url} (firewall, bind, route); if the address is wrong: {again}",
        worker,
    )


def _is_local(url: str) -> bool:
    """The host has said it, so it may be no URL."""
    try:
        return parse_address(url).is_local
    except UsageError:
        return False
