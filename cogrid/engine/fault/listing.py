"""What the fault engine tells about its models, in both dialects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cogrid.engine.fault.model import FaultModel
from cogrid.engine.fault.voice import CREATED, CREATED_AT

FOR_EVER = "2319-01-01T00:00:00Z"


def tags(models: Iterable[FaultModel]) -> dict[str, Any]:
    """/api/tags"""
    return {"models": [_tag(model) | {"modified_at": CREATED_AT} for model in models]}


def ps(models: Iterable[FaultModel]) -> dict[str, Any]:
    """/api/ps, of those that are loaded"""
    return {
        "models": [
            _tag(model)
            | {
                "expires_at": FOR_EVER,
                "size_vram": model.vram_bytes,
                "context_length": model.context,
            }
            for model in models
        ]
    }


def show(model: FaultModel) -> dict[str, Any]:
    """/api/show"""
    return {
        "details": _details(model),
        "model_info": {"general.architecture": "fault", "fault.context_length": model.context},
        "capabilities": model.capabilities,
        "modified_at": CREATED_AT,
    }


def openai_models(models: Iterable[FaultModel]) -> dict[str, Any]:
    """/v1/models, in the manner of llama.cpp"""
    return {
        "object": "list",
        "data": [
            {
                "id": model.name,
                "object": "model",
                "created": CREATED,
                "owned_by": "llamacpp",
                "meta": {"n_ctx_train": model.context, "size": model.size_bytes},
            }
            for model in models
        ],
    }


def props(models: Iterable[FaultModel], parallel: int, version: str) -> dict[str, Any]:
    """/props of llama.cpp"""
    sees = any("vision" in model.capabilities for model in models)
    return {
        "total_slots": parallel or 4,
        "build_info": version,
        "modalities": {"vision": sees, "audio": False},
        "default_generation_settings": {"n_ctx": max(m.context for m in models)},
    }


def _tag(model: FaultModel) -> dict[str, Any]:
    return {
        "name": model.tagged,
        "model": model.tagged,
        "size": model.size_bytes,
        "digest": model.digest,
        "details": _details(model),
    }


def _details(model: FaultModel) -> dict[str, Any]:
    family = "bert" if model.capabilities == ("embedding",) else "fault"
    return {
        "parent_model": "",
        "format": "gguf",
        "family": family,
        "families": [family],
        "parameter_size": "1B",
        "quantization_level": "Q4_0",
    }
