"""First figures, each beside its goal: ``python -m benchmarks.quick`` (``make bench-quick``).

Everything runs on this machine at once, so the figures depend on what else it does; the load
average before and after is told. ``--with-litellm`` does the same work through LiteLLM's proxy too.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import chat, decisions, noop, passes
from benchmarks.grid import Grid
from benchmarks.peers import litellm
from benchmarks.table import Row, render

RESULTS = Path(__file__).with_name("results") / "quick.json"
SLOTS = 64
PARTS = ("chat", "noop", "passes", "decisions")


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, prints the table, writes the JSON. 1 where a goal is missed."""
    options = _options(argv)
    before = os.getloadavg()
    start_s = time.monotonic()
    rows = [row for part in options.only for row in measure(part, options)]
    print(render(rows))
    load = f"{before[0]:.2f} before, {os.getloadavg()[0]:.2f} after"
    print(f"\n{_machine()}; load average {load}; {time.monotonic() - start_s:.0f} s")
    write(rows, {"machine": _machine(), "load_average": load, "repeats": options.repeats})
    return int(any(row.holds is False for row in rows))


def measure(part: str, options: argparse.Namespace) -> list[Row]:
    """The rows of one part."""
    scale, repeats = options.scale, options.repeats
    if part == "noop":
        return noop.measure(max(50, round(6000 * scale)), repeats)
    if part == "passes":
        return passes.measure(max(100, round(100_000 * scale)), round(10_000 * scale), repeats)
    if part == "decisions":
        return decisions.measure(repeats)
    return _chat(options)


def _chat(options: argparse.Namespace) -> list[Row]:
    place = litellm.environment() if options.with_litellm else None
    with Grid() as grid, contextlib.ExitStack() as peers:
        engine = grid.mock(options.dialect)
        grid.coordinator()
        grid.reaper()
        grid.worker(engine, SLOTS)
        grid.await_ready()
        ways = {chat.DIRECT: engine, "cogrid": grid.url}
        if place is not None:
            process, url = litellm.start(place, engine, grid.server.directory)
            peers.callback(process.stop)
            ways["litellm"] = url
        repeats = chat.measure(ways, options.repeats, options.scale)
    rows = chat.rows(repeats, "cogrid")
    return rows + (chat.rows(repeats, "litellm", goals=False) if place is not None else [])


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.quick", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="some parts only")
    parser.add_argument("--repeats", type=int, default=3, help="each figure is their median")
    parser.add_argument("--scale", type=float, default=1.0, help="of the counts of requests")
    parser.add_argument("--dialect", choices=("openai", "ollama"), default="openai")
    parser.add_argument("--with-litellm", action="store_true", help="also LiteLLM, installed once")
    return parser.parse_args(argv)


def _machine() -> str:
    return f"{os.cpu_count()} cores, Python {platform.python_version()}"


def write(rows: Sequence[Row], facts: dict[str, Any]) -> None:
    """The figures as JSON, beside the benchmarks."""
    RESULTS.parent.mkdir(exist_ok=True)
    document = {"schema": 1, **facts, "rows": rows}
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")


if __name__ == "__main__":
    raise SystemExit(main())
