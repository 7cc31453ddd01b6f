"""``python -m cogrid.engine.fault``: the fault engine by hand. Its first line is its URL."""

from __future__ import annotations

import argparse
import asyncio
import signal

from cogrid.engine.fault.model import FaultModel, parse_model
from cogrid.engine.fault.script import TOKENS
from cogrid.engine.fault.server import FaultEngine
from cogrid.engine.fault.switch import Mode


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m cogrid.engine.fault",
        description="An engine without models that fails on demand.",
        epilog="POST /fault sets a switch, modes: " + ", ".join(Mode),
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--dialect", choices=("both", "ollama", "openai"), default="both")
    parser.add_argument("--models", default="gemma3:1b", help="name[@capability+…][=BYTES],…")
    parser.add_argument("--offers", default="", help="further models, which can be pulled")
    parser.add_argument("--load-s", type=float, default=0.0, help="for each model's first request")
    parser.add_argument("--delay-ms", type=float, default=0.0, help="between tokens")
    parser.add_argument("--tokens", type=int, default=TOKENS, help="in an answer")
    parser.add_argument("--parallel", type=int, default=0, help="worked on at once; 0: all")
    return parser.parse_args()


def _models(text: str, load_s: float) -> list[FaultModel]:
    return [parse_model(each, load_s) for each in text.split(",") if each]


async def _serve(given: argparse.Namespace) -> None:
    engine = FaultEngine(
        _models(given.models, given.load_s),
        dialect=given.dialect,
        tokens=given.tokens,
        delay_s=given.delay_ms / 1000,
        parallel=given.parallel,
        host=given.host,
        port=given.port,
    )
    engine.shelf.offer(*_models(given.offers, given.load_s))
    stop = asyncio.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(sign, stop.set)
    async with engine:
        print(engine.url, flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(_serve(_arguments()))
