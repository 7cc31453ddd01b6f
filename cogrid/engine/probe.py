"""The smallest thing a model can be asked to prove that it works."""

from __future__ import annotations

from contextlib import aclosing

from cogrid.engine.api import Engine, Listed
from cogrid.model.chat import Dialect, Request
from cogrid.model.task import Kind


def probe_request(model: Listed) -> Request:
    """One token of a chat; one vector of a model that only embeds. Nothing in it changes how the
    model is loaded: the number of tokens belongs to the request alone."""
    if "embed" in model.supports and "chat" not in model.supports:
        return Request(Kind.EMBED, Dialect.OPENAI, model.name, {"input": "hi"})
    payload = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
    return Request(Kind.CHAT, Dialect.OPENAI, model.name, payload)


async def probe(engine: Engine, model: Listed) -> None:
    """Asks, and reads the answer to its end."""
    async with aclosing(engine.stream(probe_request(model))) as items:
        async for _ in items:
            pass
