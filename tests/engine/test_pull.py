"""Models are got and thrown away."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from cogrid.engine.api import EngineError, Fault
from cogrid.engine.demo import DemoEngine
from cogrid.engine.fault import FaultEngine, FaultModel, Mode
from cogrid.engine.library import Progress, library
from cogrid.engine.ollama import OllamaEngine
from cogrid.engine.ollama_pull import PullLines
from cogrid.engine.openai import OpenAIEngine
from tests.wait import until_async

NEW = FaultModel("llama3.2:1b", size_bytes=1_000)


@pytest.fixture
async def ollama(fault: FaultEngine) -> AsyncIterator[OllamaEngine]:
    fault.shelf.offer(NEW)
    engine = OllamaEngine(fault.url)
    yield engine
    await engine.aclose()


async def pulled(engine: OllamaEngine, model: str = NEW.name) -> list[Progress]:
    async with aclosing(engine.pull(model)) as steps:
        return [step async for step in steps]


async def test_a_pull_tells_of_all_layers_together(ollama: OllamaEngine) -> None:
    steps = await pulled(ollama)
    assert (steps[0].status, steps[-1].status) == ("pulling manifest", "success")
    done = [step.completed_bytes for step in steps]
    assert done == sorted(done)
    assert (done[1], done[-1], steps[4].total_bytes, steps[-1].total_bytes) == (
        225,
        1000,
        900,
        1000,
    )
    assert NEW.name in [model.name for model in await ollama.listed()]
    await ollama.remove(NEW.name)
    assert NEW.name not in [model.name for model in await ollama.listed()]
    with pytest.raises(EngineError, match="has no model") as error:
        await ollama.remove(NEW.name)
    assert error.value.fault is Fault.MISSING


@pytest.mark.parametrize(
    ("mode", "fault_kind", "words"),
    [
        (Mode.MISSING, Fault.MISSING, "file does not exist"),
        (Mode.ERROR_LINE, Fault.SERVER, "no space left on device"),
        (Mode.UNFINISHED, Fault.CUT, "before it had everything"),
        (Mode.CUT, Fault.CUT, "broke its answer off"),
    ],
)
async def test_a_pull_that_fails(
    ollama: OllamaEngine, fault: FaultEngine, mode: Mode, fault_kind: Fault, words: str
) -> None:
    fault.set(mode, after=3)
    with pytest.raises(EngineError, match=words) as error:
        await pulled(ollama)
    assert error.value.fault is fault_kind
    assert "llama3.2:1b" in error.value.message or fault_kind is Fault.CUT


async def test_leaving_a_pull_closes_the_connection(
    ollama: OllamaEngine, fault: FaultEngine
) -> None:
    fault.set(Mode.STALL, after=2)
    async with aclosing(ollama.pull(NEW.name)) as steps:
        assert (await anext(steps)).status == "pulling manifest"
        await anext(steps)
    await until_async(lambda: not fault._tasks, what="the connection to close")


def test_what_is_no_progress_is_an_error() -> None:
    with pytest.raises(EngineError, match="no progress"):
        PullLines().read(b"<html>")


async def test_others_have_what_they_were_started_with() -> None:
    openai = OpenAIEngine("http://127.0.0.1:9")
    for engine in (DemoEngine(), openai):
        with pytest.raises(EngineError, match="cannot be told which models it has") as error:
            library(engine)
        assert error.value.fault is Fault.REFUSED
    await openai.aclose()
