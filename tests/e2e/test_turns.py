"""People before batch, and in turns; a title never before the chat that it belongs to; each prompt
in its domain."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from cogrid.engine.fault import FaultEngine, FaultModel, Mode
from tests.e2e.chat import Chat, Ending
from tests.e2e.grid import MODEL, Grid, chats
from tests.e2e.overlap import at_defaults
from tests.wait import until_async

JAPANESE_MODEL = "hf.co/LiquidAI/LFM2.5-1.2B-JP-GGUF:Q4_K_M"
BACKLOG, AT_ONCE = 100, 5
TITLE = "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history."
TITLE_GAPS_S = (0.0, 0.02, 0.1, 0.2, 0.3, 0.38)
"""How long before its chat a title was seen to arrive."""
TRUST = {"COGRID_COORDINATOR_TRUST_USER_HEADERS": "true"}
HOLD_S = 60.0
"""As long as the first request may hold its slot in silence, whatever the scale."""
DOMAINS = f"""
[[domain]]
name = "code"
words = ["python", "関数"]
models = ["{MODEL}"]

[[domain]]
name = "japanese"
languages = ["ja"]
models = ["{JAPANESE_MODEL}"]

[[domain]]
name = "general"
models = ["{MODEL}"]
"""


def by(user: str) -> dict[str, str]:
    """What Open WebUI says of who asks."""
    return {"X-OpenWebUI-User-Id": user}


class OneSlot:
    """A worker with one slot, which a first request holds until it is let go."""

    def __init__(self, grid: Grid, engine: FaultEngine, holder: Chat) -> None:
        self.grid = grid
        self._engine = engine
        self._holder = holder

    @classmethod
    async def held(cls, grid: Grid) -> OneSlot:
        """The slot is taken; what is asked from now on waits."""
        grid.more["COGRID_LIMITS_IDLE_S"] = f"{HOLD_S / grid.scale:g}"
        grid.coordinator(env=TRUST)
        grid.reaper()
        engine = await grid.engine(tokens=2)
        grid.worker("esxi", engine)
        await grid.up("esxi")
        engine.set(Mode.STALL, after=1, times=1)
        holder = grid.chat(headers=by("holder"))
        await holder.reaches(1)
        return cls(grid, engine, holder)

    async def waits(self, tasks: int) -> None:
        """So many wait, wherever."""
        await until_async(lambda: len(self.grid.events("submitted")) == tasks + 1, 30)

    async def served(self, *asked: Chat) -> list[str]:
        """Lets go of the slot; the tasks in the order in which they were begun."""
        await self._holder.leave()
        for chat in asked:
            assert await chat.ended(60) is Ending.ANSWER
        return [event.task for event in self.grid.events("claimed")[1:]]


@pytest.mark.e2e
@pytest.mark.parametrize("worker", ["", "esxi"])
async def test_a_newcomer_is_served_within_two_tasks(grid: Grid, worker: str) -> None:
    """Ann queues 100; Bob then sends one, to the same queue or to the worker's own."""
    slot = await OneSlot.held(grid)
    backlog: list[Chat] = []
    for count in range(AT_ONCE, BACKLOG + 1, AT_ONCE):
        backlog += [grid.chat(headers=by("ann"), stream=n % 2 == 0) for n in range(AT_ONCE)]
        await slot.waits(count)
    bob = grid.chat(headers=by("bob"), worker=worker)
    await slot.waits(BACKLOG + 1)
    order = await slot.served(bob, *backlog)
    assert order.index(bob.task) < 2
    assert len(order) == BACKLOG + 1


@pytest.mark.e2e
async def test_users_take_turns(grid: Grid) -> None:
    """Whoever asks for much waits behind himself, not in front of the others; each one's own
    requests stay in their order."""
    slot = await OneSlot.held(grid)
    asked: dict[str, list[Chat]] = {}
    for user, many in (("ann", 12), ("bob", 3), ("eve", 3)):
        asked[user] = []
        for _ in range(many):
            chat = grid.chat(headers=by(user))
            await chat.accepted()
            asked[user].append(chat)
    order = await slot.served(*itertools.chain(*asked.values()))
    owner = {chat.task: user for user, chats_ in asked.items() for chat in chats_}
    assert [owner[task] for task in order] == [*["ann", "bob", "eve"] * 3, *["ann"] * 9]
    for user, sent in asked.items():
        assert [chat.task for chat in sent] == [task for task in order if owner[task] == user]


@pytest.mark.e2e
async def test_people_before_background_before_batch(grid: Grid) -> None:
    """Whatever came first, and whoever asks."""
    slot = await OneSlot.held(grid)
    request = {"model": MODEL, "messages": [{"role": "user", "content": "hello"}]}
    batch = []
    for _ in range(3):
        answer = await grid.http.post("/task", json={"request": request, "band": "batch"})
        assert answer.status_code == 202, answer.text
        batch.append(answer.json()["task"])
    background = [grid.chat(TITLE, stream=False, headers=by("ann")) for _ in range(3)]
    await slot.waits(6)
    people = [grid.chat(headers=by(user)) for user in ("ann", "bob", "ann")]
    await slot.waits(9)
    order = await slot.served(*background, *people)
    await until_async(lambda: len(grid.events("done")) == 9)
    order = [event.task for event in grid.events("claimed")[1:]]
    assert set(order[:3]) == {chat.task for chat in people}
    assert set(order[3:6]) == {chat.task for chat in background}
    assert order[6:] == batch


@at_defaults
async def test_title_does_not_delay_its_chat(grid: Grid) -> None:
    """One slot; the title is asked for before the chat, by up to 380 ms, in both dialects."""
    grid.coordinator(env=TRUST)
    grid.reaper()
    engine = await grid.engine(tokens=15, delay_s=0.1)
    grid.worker("esxi", engine)
    await grid.up("esxi")
    for number, gap_s in enumerate(TITLE_GAPS_S):
        ollama = number % 2 == 1
        title = grid.chat(TITLE, stream=False, ollama=ollama, headers=by("ann"))
        await asyncio.sleep(gap_s)  # as the browser does
        chat = grid.chat("why is the sky blue?", ollama=ollama, headers=by("ann"))
        assert await chat.ended(20) is Ending.ANSWER
        assert chat.first_s < 0.5, f"it waited {chat.first_s:.2f} s behind its title"
        assert await title.ended(20) is Ending.ANSWER
        order = [event.task for event in grid.events("claimed")[-2:]]
        assert order == [chat.task, title.task]
        assert grid.field(title.task, "band") == "1"


@pytest.mark.e2e
async def test_prompts_find_their_domain(grid: Grid) -> None:
    """With model ``auto``, in Japanese too; ``cogrid route`` says the same as what happens."""
    file = grid.directory / "cogrid.toml"
    file.write_text(DOMAINS, encoding="utf-8")
    grid.coordinator(env={"COGRID_CONFIG": str(file)})
    engine = await grid.engine()
    engine.models[JAPANESE_MODEL] = FaultModel(JAPANESE_MODEL)
    grid.worker("esxi", engine)
    await grid.up("esxi")
    await until_async(lambda: JAPANESE_MODEL in (grid.redis.hget("worker:esxi", "models") or ""))
    for words, domain, model in (
        ("空はなぜ青いのですか。簡単に説明してください。", "japanese", JAPANESE_MODEL),
        ("この関数を直してください", "code", MODEL),
        ("ラーメンとOllamaのどちらが好き?", "japanese", JAPANESE_MODEL),
        ("Why is the sky blue?", "general", MODEL),
    ):
        chat = grid.chat(words, model="auto")
        assert await chat.ended(15) is Ending.ANSWER, chat.error
        assert chat.headers["x-cogrid-domain"] == domain, words
        assert chat.headers["x-cogrid-model"] == model
        assert chats(engine)[-1].model == model
        assert grid.field(chat.task, "domain") == domain
        routed = await grid.cogrid("route", "--config", str(file), "--json", words)
        assert routed.code == 0, routed.err
        assert (routed.json["domain"], routed.json["model"]) == (domain, model)
