"""An answer in one piece: its status is sent when it is known."""

from __future__ import annotations

from cogrid.coordinator.errors import failed
from cogrid.coordinator.exchange import JSON, Exchange
from cogrid.coordinator.follower import Follower
from cogrid.coordinator.gathered import Gathered
from cogrid.coordinator.ran import Ran
from cogrid.coordinator.voice import Voice
from cogrid.model.chat import Delta, End
from cogrid.model.task import State

LOOK_S = 3600.0
"""The follower is woken by news, by the client's leaving and by the coordinator's end; this is only
how often it looks at nothing."""


async def gather(follower: Follower, ran: Ran) -> tuple[End, Gathered]:
    """One task's end and its answer; text of a run that is over without one is void."""
    run, gathered = -1, Gathered()
    while True:
        for entry in await follower.next(LOOK_S):
            item = entry.item
            if type(item) is Delta:
                if entry.run != run:
                    run, gathered = entry.run, Gathered()
                gathered.add(item)
                continue
            ran.take(item)
            if type(item) is End:
                return item, gathered
            # A run begins or is void; it may also be read a second time, after a failover.
            run, gathered = -1, Gathered()


async def whole(exchange: Exchange, follower: Follower, voice: Voice, ran: Ran) -> End:
    """Wait for the end and answer; RefusedError where the task failed."""
    end, gathered = await gather(follower, ran)
    if end.state is not State.DONE:
        raise failed(end)
    body = voice.whole(gathered, end, ran.facts())
    await exchange.reply(200, body, [JSON, *ran.headers()])
    return end
