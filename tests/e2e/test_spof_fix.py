"""``cogrid spof --fix`` with workers as processes on three hosts: slow and stalled pulls, a full
disk, Control-C, and at the end nothing to find."""

from __future__ import annotations

from collections import Counter

from cogrid.engine.fault import FaultEngine, FaultModel, Mode, Switch
from tests.cli.terminal import CONTROL_C
from tests.e2e.grid import Grid
from tests.e2e.host import Host, needs_hosts
from tests.e2e.overlap import scaled
from tests.wait import until_async

GIB = 1 << 30
SMALL, LARGE = "small:1b", "large:3b"
MODELS = ("gemma3:1b", "llama3.2:1b", "qwen3:4b")
HOSTS = ("esxi", "ai-core", "nas")
SPARE_BYTES = GIB
"""What a pull leaves free on a disk."""
NO_ROOM = "1 more host with Ollama and room for it is needed, there is none"
SLOW_S = 0.15


async def _fleet(grid: Grid, has: dict[Host, tuple[FaultModel, ...]]) -> dict[str, FaultEngine]:
    """A worker on each host, with its models; every engine could pull all of them."""
    needs_hosts()
    grid.patient()
    await grid.begin()
    every = {model.name: model for models in has.values() for model in models}
    engines = {}
    for host, models in has.items():
        engine = engines[host.name] = await grid.engine(*models)
        engine.shelf.offer(*every.values())
        grid.worker(host.name, engine, host=host)
    await grid.up(*engines)
    await until_async(lambda: _all_serve(grid, has), 15, "every model to be served")
    return engines


def _all_serve(grid: Grid, has: dict[Host, tuple[FaultModel, ...]]) -> bool:
    served = {host.name: grid.redis.hget(f"worker:{host.name}", "models") for host in has}
    return all(model.name in served[host.name] for host, models in has.items() for model in models)


@scaled
async def test_three_hosts_end_with_nothing_to_find(grid: Grid) -> None:
    """One pull is slow and one stalls: the first fix says so and leaves that one, the second ends
    it. The pulls are spread: each host gets one."""
    models = tuple(FaultModel(name) for name in MODELS)
    engines = await _fleet(
        grid, {Host(name): (model,) for name, model in zip(HOSTS, models, strict=True)}
    )
    assert (await grid.cogrid("spof")).code == 3
    plan = await grid.cogrid("spof", "--fix", "--dry-run")
    assert plan.code == 0
    pulls = [line.split() for line in plan.out.splitlines()]
    assert {words[1] for words in pulls} == set(MODELS)
    assert Counter(words[-1] for words in pulls) == dict.fromkeys(HOSTS, 1)
    asked = await grid.cogrid("spof", "--fix")
    assert asked.code == 2, "nobody is there to ask"
    assert "add --yes" in asked.err
    assert [len(engine.models) for engine in engines.values()] == [1, 1, 1]

    for engine in engines.values():
        engine.switches.set(Switch(Mode.DELAY, seconds=SLOW_S, model=MODELS[0]))
        engine.switches.set(Switch(Mode.STALL, after=3, model=MODELS[1]))
    shown = await grid.on_terminal("spof", "--fix", typed="y\n")
    assert shown.code == 1, shown.out
    assert "Have 3 pulls done? [y/N]:" in shown.out
    assert "━" in shown.out, "no bar"
    assert f"only ai-core can serve {MODELS[1]}" in shown.out
    assert "has not got on" in shown.out
    left = (await grid.cogrid("spof", "--json")).json["findings"]
    assert [(each["kind"], each["subject"]) for each in left] == [("single_worker", MODELS[1])]

    for engine in engines.values():
        engine.switches.clear()
    said = await grid.cogrid("spof", "--fix", "--yes")
    assert said.code == 0, said.out
    assert said.out.splitlines()[-1] == "no single point of failure is left"
    assert "\r" not in said.err
    assert sum(len(engine.models) for engine in engines.values()) == 6
    after = await grid.cogrid("spof")
    assert (after.code, after.out) == (
        0, "no single point of failure: every model is on two hosts\n"
    )  # fmt: skip
    again = await grid.cogrid("spof", "--fix")
    assert (again.code, again.out) == (0, "nothing to fix: every model is on two hosts\n")


@scaled
async def test_control_c_and_a_full_disk(grid: Grid) -> None:
    """nas has no room for the large model, so ai-core gets it; interrupted, the pulls are left, and
    the next fix does them."""
    large, small = FaultModel(LARGE, size_bytes=GIB // 2), FaultModel(SMALL, size_bytes=1000)
    engines = await _fleet(grid, {
        Host("esxi"): (large, small),
        Host("ai-core", SPARE_BYTES + GIB): (FaultModel("other:1b", size_bytes=1000),),
        Host("nas", SPARE_BYTES + GIB // 4): (FaultModel("other:1b", size_bytes=1000),),
    })  # fmt: skip
    plan = (await grid.cogrid("spof", "--fix", "--dry-run", "--json")).json["pulls"]
    assert {each["model"]: each["host"] for each in plan} == {LARGE: "ai-core", SMALL: "nas"}

    for engine in engines.values():
        engine.switches.set(Switch(Mode.STALL, after=3, model=LARGE))
    shown = await grid.on_terminal(
        "spof", "--fix", cues=(("[y/N]:", "y\n"), (f"ai-core {LARGE} pulling", CONTROL_C))
    )
    assert shown.code == 130, shown.out
    assert "cancelled" in shown.out
    assert "Traceback" not in shown.out
    await grid.at_rest()
    assert LARGE not in engines["ai-core"].models
    events = [event.edge for event in grid.events("cancelled")]
    assert events, "nothing was cancelled"

    for engine in engines.values():
        engine.switches.clear()
    assert (await grid.cogrid("spof", "--fix", "--yes")).code == 0
    assert LARGE in engines["ai-core"].models
    assert LARGE not in engines["nas"].models
    assert (await grid.cogrid("spof")).code == 0


@scaled
async def test_no_room_anywhere(grid: Grid) -> None:
    """What fits nowhere is left, and said; exit code 3."""
    large = FaultModel(LARGE, size_bytes=GIB // 2)
    engines = await _fleet(grid, {
        Host("esxi"): (large,),
        Host("nas", SPARE_BYTES + GIB // 4): (FaultModel(SMALL, size_bytes=100_000_000),),
    })  # fmt: skip
    plan = await grid.cogrid("spof", "--fix", "--dry-run")
    assert plan.code == 3
    assert plan.out.splitlines() == [
        f"pull {SMALL} (0.1 GB) on esxi, host esxi",
        f"not on two hosts: {LARGE}: {NO_ROOM}",
    ]
    said = await grid.cogrid("spof", "--fix", "--yes")
    assert said.code == 3
    assert SMALL in engines["esxi"].models
    assert f"only esxi can serve {LARGE}" in said.out
