"""What Ollama tells about its models: /api/tags, /api/show and /api/ps as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cogrid.engine.api import Listed
from cogrid.model.names import normal_model

_SUPPORTS = {
    "completion": "chat",
    "embedding": "embed",
    "vision": "vision",
    "tools": "tools",
    "thinking": "thinking",
}
_EMBEDDING_FAMILIES = ("bert", "nomic-bert")


@dataclass(frozen=True, slots=True)
class Told:
    """What does not change while a model's digest does not. context: 0 if not told."""

    supports: tuple[str, ...]
    context: int = 0


@dataclass(frozen=True, slots=True)
class Loaded:
    """One entry of /api/ps."""

    vram_bytes: int
    context: int


def told(about: dict[str, Any]) -> Told:
    """From /api/show, or from an entry of /api/tags that has ``capabilities``."""
    details = _object(about.get("details"))
    info = _object(about.get("model_info"))
    context = _number(details.get("context_length")) or next(
        (_number(value) for name, value in info.items() if name.endswith(".context_length")), 0
    )
    named = about.get("capabilities")
    if not isinstance(named, list):
        return Told(_guessed(about, details), context)
    supports = tuple(_SUPPORTS[word] for word in named if word in _SUPPORTS)
    return Told(supports or ("chat",), context)


def _guessed(about: dict[str, Any], details: dict[str, Any]) -> tuple[str, ...]:
    """Servers before 0.6.4 do not name capabilities; their own test for tools is this one."""
    if details.get("family") in _EMBEDDING_FAMILIES:
        return ("embed",)
    supports = ["chat"]
    if about.get("projector_info"):
        supports.append("vision")
    if ".Tools" in str(about.get("template", "")):
        supports.append("tools")
    return tuple(supports)


def loaded_models(models: list[dict[str, Any]]) -> dict[str, Loaded]:
    """Entries of /api/ps by their normal name."""
    return {
        normal_model(str(model.get("model") or model.get("name") or "")): Loaded(
            _number(model.get("size_vram")), _number(model.get("context_length"))
        )
        for model in models
    }


def listed_model(tag: dict[str, Any], known: Told | None, loaded: Loaded | None) -> Listed:
    """One entry of /api/tags with what else is known of it."""
    known = known or Told(("chat",))
    return Listed(
        name=normal_model(str(tag.get("model") or tag.get("name"))),
        digest=str(tag.get("digest", "")),
        size_bytes=_number(tag.get("size")),
        supports=known.supports,
        loaded=loaded is not None,
        vram_bytes=loaded.vram_bytes if loaded else 0,
        context=(loaded.context if loaded else 0) or known.context,
    )


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
