"""What a trial of a worker found: the start up to the end of the probes, as a value."""

from __future__ import annotations

from dataclasses import dataclass

from cogrid.model.worker import OfferState


@dataclass(frozen=True, slots=True)
class TriedModel:
    """One model that was asked for one token. state: probing where the time was up before. reason:
    why it failed, else null."""

    name: str
    state: OfferState
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class TriedRedis:
    """The server as this machine finds it. url: without its password. error: why it cannot be used
    from here, null where it can be written. ahead_s: how far this machine's clock is ahead of
    Redis', null where it did not answer."""

    url: str
    error: str | None = None
    hint: str | None = None
    ahead_s: float | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """engine: its kind and version, null where none answered; engine_error then says why. redis:
    null where it was not asked. machine: bytes of memory and disk, all and free."""

    worker: str
    version: str
    python: str
    host: str
    engine: str | None
    engine_url: str | None
    engine_error: str | None
    engine_hint: str | None
    pool: str | None
    slots: int | None
    gpu: bool | None
    models: tuple[TriedModel, ...]
    redis: TriedRedis | None
    machine: dict[str, int]

    @property
    def fine(self) -> bool:
        """Whether a worker started so would get work, and answer it."""
        passed = bool(self.models) and all(m.state is OfferState.OK for m in self.models)
        return passed and not (self.redis and self.redis.error)
