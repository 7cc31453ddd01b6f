"""What a client asks for, whatever its dialect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cogrid.model.chat import Dialect, Request
from cogrid.model.names import normal_model
from cogrid.model.task import Kind
from cogrid.rules.domain import Prompt

TASK_MARK = "### Task:"
"""How Open WebUI begins the prompts of its own calls for titles, tags and follow-ups."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it was understood.

    model: the normal name, or ``auto``. shown: the name as the client wrote it, which its answer
    repeats. payload: what travels to the engine. needs: of vision, tools, thinking. housekeeping:
    a call of Open WebUI's own behind somebody's chat. conversation: what all requests of one
    conversation have in common, () where there is none. goes_on: it is not the first one. load:
    Ollama's request to load or unload a model, which is answered without a task. base64: embeddings
    as packed floats. single: Ollama's older form of an embedding.
    """

    kind: Kind
    dialect: Dialect
    model: str
    shown: str
    stream: bool
    payload: dict[str, Any]
    prompt: Prompt
    needs: tuple[str, ...] = ()
    housekeeping: bool = False
    conversation: tuple[str, str] | tuple[()] = ()
    goes_on: bool = False
    include_usage: bool = False
    load: str = ""
    base64: bool = False
    single: bool = False

    def request(self, model: str) -> Request:
        """The task's body for the model that was chosen."""
        return Request(self.kind, self.dialect, model, {**self.payload, "model": model})


def name_of(shown: str) -> str:
    """The normal name of a model as somebody wrote it."""
    return normal_model(shown.strip())


def needs_of(images: bool, tools: bool, thinking: bool) -> tuple[str, ...]:
    """What a model should support for this, in the words of an offer."""
    wanted = {"vision": images, "tools": tools, "thinking": thinking}
    return tuple(name for name, needed in wanted.items() if needed)


def is_housekeeping(stream: bool, text: str) -> bool:
    """True for a call of Open WebUI's own: never streamed, and its prompt says so."""
    return not stream and text.startswith(TASK_MARK)
