"""Findings that only living workers bring about, each mended by the command that it prints."""

from __future__ import annotations

from cogrid.engine.fault import FaultEngine, FaultModel
from tests.e2e.chat import Ending
from tests.e2e.grid import MODEL, Grid, said
from tests.e2e.host import Host, needs_hosts
from tests.e2e.mended import command, found, mend
from tests.e2e.overlap import scaled
from tests.wait import until_async

SLACK_S = 30.0
FROZEN_S = 3.0
RUN_S = 10.0
TOKENS = 100


@scaled
async def test_frozen_claims(grid: Grid) -> None:
    """The claim loop stands still behind a run: the run ends well, and then nothing is taken."""
    grid.patient(FROZEN_S)
    await grid.begin()
    switch = grid.directory / "hang"
    engine = await grid.engine(tokens=TOKENS, delay_s=RUN_S / TOKENS)
    grid.worker("esxi", engine, env={"COGRID_TEST_HANG_CLAIMS": str(switch)})
    await grid.up("esxi")
    chat = grid.chat()
    await chat.reaches(1)
    switch.touch()

    await _comes(grid, "frozen_claims", "diagnose ghosts")
    assert await mend(grid, "frozen_claims", "diagnose ghosts") == "cogrid worker drain esxi"
    assert await chat.ended(SLACK_S) is Ending.ANSWER
    assert chat.text == said(TOKENS)


@scaled
async def test_excluded(grid: Grid) -> None:
    """Its engine has lost the one model that its configuration names."""
    grid.patient()
    await grid.begin()
    engine = await grid.engine(MODEL, "llama3.2:1b")
    engine.shelf.offer(FaultModel(MODEL))
    grid.worker("esxi", engine, env={"COGRID_WORKER_MODELS": MODEL})
    await grid.up("esxi")
    del engine.models[MODEL]

    await _comes(grid, "excluded", "diagnose ghosts")
    ran = await mend(grid, "excluded", "diagnose ghosts")
    assert ran == f"cogrid model pull {MODEL} --worker esxi"
    assert await grid.chat().ended(SLACK_S) is Ending.ANSWER


@scaled
async def test_refused_twin(grid: Grid) -> None:
    """A second machine asks for a name; stopped there, and started as the finding says."""
    needs_hosts()
    grid.patient()
    await grid.begin()
    engine = await grid.engine()
    elsewhere = {"XDG_STATE_HOME": str(grid.directory / "pve2")}
    grid.worker("esxi", engine, host=Host("pve1"))
    await grid.up("esxi")
    twin = grid.worker("twin", engine, worker_id="esxi", host=Host("pve2"), env=elsewhere)
    await twin.says("[hello] refused: worker_id=esxi is held by host pve1", within_s=SLACK_S)
    (finding,) = await found(grid, "refused_twin", "diagnose ghosts")
    assert finding.what == (
        "host pve2 runs a worker under the name esxi, which pve1 holds; give it another name there"
    )
    assert await twin.stop() == 0
    words = (*command(finding), "--engine", engine.url)
    grid.daemon("esxi-2", words, elsewhere, Host("pve2"))
    await grid.up("esxi", "esxi-2")

    async def silent() -> bool:
        return not await found(grid, "refused_twin", "diagnose ghosts")

    await until_async(silent, SLACK_S, "the refusals to be over")


@scaled
async def test_single_points_and_what_ifs(grid: Grid) -> None:
    """Models on one worker and on one host, and models that the loss of a worker would take."""
    await _fleet(grid, {
        "a": ("h1", ("m:one-host",)),
        "b": ("h1", ("m:one-host", "m:one-worker")),
        "c": ("h2", ("m:alone", "m:two")),
        "d": ("h3", ("m:two",)),
    })  # fmt: skip
    fix = "cogrid spof --fix --model"
    assert await mend(grid, "single_host", "spof") == f"{fix} m:one-host"
    single = "spof --model m:one-worker"
    assert await mend(grid, "single_worker", single) == f"{fix} m:one-worker"
    assert await found(grid, "single_host", single) == []
    ran = await mend(grid, "left_with_one", "spof --without d", "m:two")
    assert ran.startswith("cogrid model pull m:two --worker ")
    assert ran.split()[-1] in ("a", "b")
    ran = await mend(grid, "lost_model", "spof --without c", "m:alone")
    assert ran.startswith("cogrid model pull m:alone --worker ")
    assert sorted(ran.split()[5::2]) in (["a", "d"], ["b", "d"]), "one on each host that is left"
    assert await found(grid, "left_with_one", "spof --without c", "m:alone") == []


@scaled
async def test_no_home_and_drift(grid: Grid) -> None:
    """The last worker with a model dies; another has an older copy of a third one."""
    engines = await _fleet(grid, {
        "a": ("h1", (MODEL,)),
        "b": ("h2", ("m:drifts",)),
        "c": ("h3", ("m:drifts",)),
    }, older={"a": "m:drifts"})  # fmt: skip
    assert await mend(grid, "drift", "drift") == ("cogrid model pull m:drifts --worker a")
    assert engines["a"].models["m:drifts"].digest == engines["b"].models["m:drifts"].digest
    grid.daemons["a"].kill()

    await _comes(grid, "no_home", "spof")
    ran = await mend(grid, "no_home", f"spof --model {MODEL}")
    assert ran == f"cogrid spof --fix --model {MODEL}"
    assert (await grid.cogrid("spof", "--model", MODEL)).code == 0
    await mend(grid, "gone", "diagnose dead")


async def _comes(grid: Grid, kind: str, ask: str) -> None:
    async def is_there() -> bool:
        return bool(await found(grid, kind, ask))

    await until_async(is_there, SLACK_S, kind)


class Older(FaultModel):
    """The same name, and another digest."""

    __slots__ = ()

    @property
    def digest(self) -> str:
        return "0" * 64


async def _fleet(
    grid: Grid,
    fleet: dict[str, tuple[str, tuple[str, ...]]],
    older: dict[str, str] | None = None,
) -> dict[str, FaultEngine]:
    """Workers by their id, each with its host and its models; every engine can pull all of them.
    older: a model that one has in another version."""
    needs_hosts()
    grid.patient()
    await grid.begin()
    names = {name for _, models in fleet.values() for name in models}
    engines = {}
    for worker, (host, models) in fleet.items():
        old = [Older((older or {})[worker])] if worker in (older or {}) else []
        engine = engines[worker] = await grid.engine(*models, *old)
        engine.shelf.offer(*map(FaultModel, names))
        elsewhere = {"XDG_STATE_HOME": str(grid.directory / worker)}
        grid.worker(worker, engine, host=Host(host), env=elsewhere)
    await grid.up(*fleet)
    return engines
