"""What OpenAI-style servers tell about their models: /v1/models and what some say besides."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

from cogrid.engine.api import Listed
from cogrid.model.names import normal_model


class Maker(StrEnum):
    """Whose server it is, where that is known."""

    LLAMA_CPP = "llama.cpp"
    VLLM = "vllm"
    LM_STUDIO = "lm studio"
    OTHER = ""


_OWNERS = {
    "llamacpp": Maker.LLAMA_CPP,
    "vllm": Maker.VLLM,
    "organization_owner": Maker.LM_STUDIO,
    "organization-owner": Maker.LM_STUDIO,
}
_EMBEDS = re.compile(r"embed|(^|[/_-])(bge|e5|gte|minilm|mxbai)([_-]|$)", re.IGNORECASE)
_SEES = re.compile(r"(^|[/_-])(vl|vision|llava|pixtral|internvl|minicpm-v)", re.IGNORECASE)


def maker(models: list[dict[str, Any]]) -> Maker:
    """By the ``owned_by`` of its models."""
    owners = (_OWNERS.get(str(model.get("owned_by"))) for model in models)
    return next((owner for owner in owners if owner), Maker.OTHER)


def raw_names(models: list[dict[str, Any]]) -> dict[str, str]:
    """Normal name -> the server's own spelling, which is what it must be asked for."""
    names = [str(model["id"]) for model in models if model.get("id")]
    return {normal_model(name): name for name in names}


def listed_models(models: list[dict[str, Any]], about: dict[str, Any]) -> tuple[Listed, ...]:
    """about: llama.cpp's /props or LM Studio's /api/v0/models, {} for others."""
    described = about.get("data")
    studio = {
        str(entry.get("id")): entry
        for entry in (described if isinstance(described, list) else ())
        if isinstance(entry, dict)
    }
    whose = maker(models)
    listed = {}
    for model in models:
        name = str(model.get("id") or "")
        if name:
            one = _listed(whose, model | studio.get(name, {}), about)
            listed[one.name] = one
    return tuple(listed.values())


def _listed(whose: Maker, model: dict[str, Any], about: dict[str, Any]) -> Listed:
    meta = _object(model.get("meta"))
    settings = _object(about.get("default_generation_settings"))
    contexts = (
        model.get("loaded_context_length"),
        model.get("max_model_len"),
        settings.get("n_ctx"),
        model.get("max_context_length"),
        meta.get("n_ctx_train"),
    )
    return Listed(
        name=normal_model(str(model["id"])),
        size_bytes=_number(meta.get("size")),
        supports=_supports(model, about),
        loaded=_is_loaded(whose, model),
        context=next((n for n in map(_number, contexts) if n), 0),
    )


def _supports(model: dict[str, Any], about: dict[str, Any]) -> tuple[str, ...]:
    """LM Studio tells what a model is, llama.cpp whether it sees; the rest is in the name at best.

    Tools and thinking are taken for granted where nobody tells: a request that asks for them in
    vain is answered without.
    """
    name = str(model["id"])
    kind = model.get("type")
    if kind == "embeddings" or (kind is None and _EMBEDS.search(name)):
        return ("embed",)
    sees = _object(about.get("modalities")).get("vision") or kind == "vlm"
    if sees or (kind is None and not about.get("modalities") and _SEES.search(name)):
        return ("chat", "vision", "tools", "thinking")
    return ("chat", "tools", "thinking")


def _is_loaded(whose: Maker, model: dict[str, Any]) -> bool:
    """llama.cpp and vLLM have in memory what they list, unless they say otherwise."""
    state = _object(model.get("status")).get("value") or model.get("state")
    if state is not None:
        return bool(state == "loaded")
    return whose in (Maker.LLAMA_CPP, Maker.VLLM)


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
