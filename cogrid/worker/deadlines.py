"""How long a run may be silent: until its first token, and between tokens."""

from __future__ import annotations

from typing import Any

from cogrid.model.chat import Request, Usage
from cogrid.model.limits import Limits

SPARE = 3.0
"""What was seen may take so many times as long before it counts as silence."""

BYTES_PER_TOKEN = 3
"""Of a prompt's text; on the side of more tokens for every language that we tried."""

IMAGE_TOKENS = 1_000
"""What a model sees an image as, whatever its size in bytes."""

SMALL_BODY_BYTES = 4_096
"""A body up to here is not looked into: all of it may be prompt."""

RATE_TOKENS = 64
"""Shorter prompts say nothing about speed: they may have been answered from the cache."""


class Speeds:
    """What one engine showed so far, a model at a time."""

    def __init__(self) -> None:
        self._load_s: dict[str, float] = {}
        self._rate: dict[str, float] = {}

    def saw(self, model: str, usage: Usage) -> None:
        """A run's own figures."""
        if usage.load_s > self._load_s.get(model, 0.0):
            self._load_s[model] = usage.load_s
        if usage.prompt_s > 0 and usage.prompt_tokens >= RATE_TOKENS:
            self._rate[model] = usage.prompt_tokens / usage.prompt_s

    def first_s(self, model: str, loaded: bool, tokens: int, limits: Limits) -> float:
        """Seconds until the first token: time to load the model unless it is loaded, and time to
        read the prompt."""
        load_s = max(limits.load_s, SPARE * self._load_s.get(model, 0.0))
        rate = self._rate.get(model)
        reading_s = SPARE * tokens / rate if rate else tokens / limits.prompt_tokens_per_s
        return (0.0 if loaded else load_s) + limits.prompt_s + reading_s

    def longest_first_s(self, limits: Limits) -> float:
        """The same for a run of which nothing is known yet, not even its model."""
        seen_s = max(self._load_s.values(), default=0.0)
        return max(limits.load_s, SPARE * seen_s) + limits.prompt_s


def prompt_tokens(request: Request, body_bytes: int) -> int:
    """An estimate of the prompt's length, without its images' bytes."""
    if body_bytes <= SMALL_BODY_BYTES:
        return body_bytes // BYTES_PER_TOKEN
    return _weight(request.payload, "") // BYTES_PER_TOKEN


def _weight(value: Any, key: str) -> int:
    """Bytes of text in a part of a payload; its structure costs next to nothing."""
    if isinstance(value, str):
        if (key == "url" and value.startswith("data:")) or key == "images":
            return IMAGE_TOKENS * BYTES_PER_TOKEN
        return len(value) if value.isascii() else len(value.encode("utf-8", "replace"))
    if isinstance(value, dict):
        return sum(_weight(part, name) for name, part in value.items())
    if isinstance(value, list):
        return sum(_weight(part, key) for part in value)
    return 1
