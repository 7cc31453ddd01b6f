"""What servers tell about their models, in the forms that are met in the wild."""

from __future__ import annotations

from typing import Any

import pytest

from cogrid.engine.api import Listed
from cogrid.engine.ollama_models import Loaded, Told, listed_model, loaded_models, told
from cogrid.engine.openai_models import Maker, listed_models, maker, raw_names


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        ({"capabilities": ["completion", "tools", "insert"]}, Told(("chat", "tools"))),
        (
            {"capabilities": ["embedding"], "model_info": {"bert.context_length": 512}},
            Told(("embed",), 512),
        ),
        ({"capabilities": [], "details": {"context_length": 8192}}, Told(("chat",), 8192)),
        ({"details": {"family": "nomic-bert"}}, Told(("embed",))),
        (
            {
                "details": {"family": "llama"},
                "template": "{{ .Tools }}",
                "projector_info": {"a": 1},
            },
            Told(("chat", "vision", "tools")),
        ),
        ({"details": None, "model_info": None}, Told(("chat",))),
    ],
)
def test_ollama_tells(about: dict[str, Any], expected: Told) -> None:
    assert told(about) == expected


def test_ollama_lists() -> None:
    tag = {"name": "gemma3:latest", "model": "gemma3:latest", "digest": "ab", "size": 7}
    loaded = loaded_models([{"name": "gemma3:latest", "size_vram": 5}])
    assert loaded == {"gemma3": Loaded(5, 0)}
    one = listed_model(tag, Told(("chat", "tools"), 4096), loaded["gemma3"])
    assert one == Listed("gemma3", "ab", 7, ("chat", "tools"), True, 5, 4096)
    assert listed_model({"name": "x"}, None, None) == Listed("x")
    assert listed_model({"name": "x"}, Told(("chat",), 9), Loaded(0, 2)).context == 2


def test_llama_cpp() -> None:
    models = [{"id": "/models/tiny.gguf", "owned_by": "llamacpp",
               "meta": {"n_ctx_train": 4096, "size": 9}}]  # fmt: skip
    about = {"modalities": {"vision": True}, "default_generation_settings": {"n_ctx": 2048}}
    supports = ("chat", "vision", "tools", "thinking")
    assert listed_models(models, about) == (
        Listed("/models/tiny.gguf", "", 9, supports, True, 0, 2048),
    )
    asleep = [models[0] | {"status": {"value": "unloaded"}}]
    assert listed_models(asleep, {})[0].loaded is False


def test_vllm() -> None:
    models = [{"id": "Qwen/Qwen2.5-VL-7B", "owned_by": "vllm", "max_model_len": 32768}]
    assert maker(models) is Maker.VLLM
    supports = ("chat", "vision", "tools", "thinking")
    assert listed_models(models, {}) == (
        Listed("Qwen/Qwen2.5-VL-7B", "", 0, supports, True, 0, 32768),
    )


def test_lm_studio() -> None:
    models = [{"id": name, "owned_by": "organization_owner"} for name in ("a", "b-embed", "c")]
    about = {
        "data": [
            {"id": "a", "type": "vlm", "state": "loaded", "max_context_length": 8192,
             "loaded_context_length": 4096},
            {"id": "b-embed", "type": "embeddings", "state": "not-loaded"},
            {"id": "c", "type": "llm", "state": "not-loaded", "max_context_length": 2048},
        ]
    }  # fmt: skip
    assert maker(models) is Maker.LM_STUDIO
    assert [(m.supports[:2], m.loaded, m.context) for m in listed_models(models, about)] == [
        (("chat", "vision"), True, 4096),
        (("embed",), False, 0),
        (("chat", "tools"), False, 2048),
    ]


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("nomic-embed-text", "embed"),
        ("BAAI/bge-m3", "embed"),
        ("intfloat/e5-large", "embed"),
        ("gemma3", "chat"),
        ("bigembarrassment", "chat"),
        ("codegteam", "chat"),
    ],
)
def test_kind_by_name(name: str, first: str) -> None:
    assert listed_models([{"id": name}], {})[0].supports[0] == first


def test_names_are_normal_and_asked_for_as_they_are() -> None:
    models: list[dict[str, Any]] = [{"id": "a:latest"}, {"id": "b:7b"}, {"object": "model"}]
    assert [model.name for model in listed_models(models, {})] == ["a", "b:7b"]
    assert raw_names(models) == {"a": "a:latest", "b:7b": "b:7b"}
    assert maker(models) is Maker.OTHER
